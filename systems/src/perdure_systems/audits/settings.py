"""The settings of the audits, under the names that they have always had. Each is read when it is used."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Final

from perdure import Backoff, Budget, Jitter, Rate, Retry
from perdure_systems.kit.settings import number_from_env, required_from_env, switch_from_env, text_from_env

QUOTA: Final = "audits.pagespeed"
WEBHOOK_RETRY: Final = Retry(attempts=5, backoff=Backoff.table("30s", "1m", "5m", "15m"), jitter=Jitter.ratio(0.2))
LIMITS: Final = {
    "pagespeed": timedelta(seconds=90),
    "screenshots": timedelta(seconds=120),
    "pdf": timedelta(seconds=120),
    "webhook": timedelta(seconds=30),
}
_DAYS_PER_YEAR: Final = 366


def audit_retry() -> Retry:
    """3 attempts, 30 and 60 seconds apart."""
    return Retry(
        attempts=number_from_env("AUDITS_JOB_MAX_ATTEMPTS", 3, at_least=1, at_most=20),
        backoff=Backoff.exponential(number_from_env("AUDITS_JOB_BACKOFF_BASE", 30, at_least=0, at_most=86_400)),
        jitter=Jitter.none(),
    )


def failed_retry_after() -> timedelta:
    """For this long a request returns the failed audit of its page."""
    return timedelta(seconds=number_from_env("AUDITS_FAILED_RETRY_AFTER", 300, at_least=0, at_most=86_400))


def require_screenshots() -> bool:
    """Whether an audit without its screenshots fails."""
    return switch_from_env("AUDITS_REQUIRE_SCREENSHOTS", default=False)


def failed_retention() -> timedelta:
    """How long failed audits are kept."""
    return timedelta(
        days=number_from_env("AUDITS_FAILED_JOBS_RETENTION_DAYS", 30, at_least=1, at_most=10 * _DAYS_PER_YEAR)
    )


def completed_retention() -> timedelta:
    """How long completed audits are kept, with their files."""
    return timedelta(days=number_from_env("AUDITS_RETENTION_DAYS", 90, at_least=1, at_most=10 * _DAYS_PER_YEAR))


def delivery_retention() -> timedelta:
    """How long webhook deliveries are kept."""
    return timedelta(days=number_from_env("AUDITS_WEBHOOK_RETENTION_DAYS", 30, at_least=1, at_most=10 * _DAYS_PER_YEAR))


def pagespeed_url() -> str:
    """The PageSpeed API; empty: the browser's own timings are used."""
    given = text_from_env("AUDITS_PAGESPEED_URL")
    if not given and pagespeed_key():
        return "https://www.googleapis.com/pagespeedonline/v5/runPagespeed"
    return given


def pagespeed_key() -> str:
    """The key for the PageSpeed API."""
    return text_from_env("AUDITS_PAGESPEED_API_KEY")


def quota() -> list[Rate | Budget]:
    """6 requests a minute and 25,000 a day. The browser's own timings have no quota."""
    if not pagespeed_url():
        return []
    return [
        Rate(per_minute(), "1m", name=QUOTA),
        Budget(QUOTA, daily=per_day(), estimate=1),
    ]


def per_minute() -> int:
    """How many requests the PageSpeed API takes in a minute."""
    return number_from_env("AUDITS_PAGESPEED_PER_MINUTE", 6, at_least=1, at_most=1_000_000)


def per_day() -> int:
    """How many requests the PageSpeed API takes in a day."""
    return number_from_env("AUDITS_PAGESPEED_PER_DAY", 25_000, at_least=1, at_most=100_000_000)


def api_token() -> str:
    """The bearer token of the API."""
    return required_from_env("AUDITS_API_TOKEN", why="without it the API refuses all requests")


def page_password() -> str:
    """The password of the pages; empty: they need none."""
    return text_from_env("AUDITS_PAGE_PASSWORD")


def webhook_url() -> str:
    """Where results are sent if the request names no address; empty: nowhere."""
    return text_from_env("AUDITS_WEBHOOK_URL")


def webhook_secret() -> str:
    """What webhooks are signed with."""
    return required_from_env("AUDITS_WEBHOOK_SECRET", why="webhooks are signed with it")


def alert_channel() -> str:
    """The channel of the notifications system for alerts about failed webhooks."""
    return text_from_env("AUDITS_ALERT_CHANNEL", "email")


def public_url() -> str:
    """The address under which receivers of webhooks reach this service."""
    return text_from_env("AUDITS_PUBLIC_URL", "http://127.0.0.1:8106").rstrip("/")


def storage_folder() -> Path:
    """Where screenshots and reports are kept."""
    return Path(text_from_env("AUDITS_STORAGE_DIR", "audits-files"))


def allow_private_addresses() -> bool:
    """Whether pages and webhooks of the own network may be reached."""
    return switch_from_env("AUDITS_ALLOW_PRIVATE_ADDRESSES", default=False)


def concurrency() -> int:
    """How many audits one process runs at the same time."""
    return number_from_env("AUDITS_CONCURRENCY", 4, at_least=1, at_most=1_000)


def least_free_mb() -> int:
    """Health warns when less than this is free on the disk."""
    return number_from_env("AUDITS_LEAST_FREE_MB", 500, at_least=0)
