"""What is set for one job alone: kept as JSON, read back whole, refused where it cannot be kept, within bounds."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from perdure import App, Backoff, Bounds, Jitter, Retry
from perdure.errors import SettingsError
from perdure.policy.failures import lineage
from perdure.policy.own_settings import OwnSettings, read_settings, settings_text

UNUSED = "sqlite:///unused.db"
MINUTE = timedelta(minutes=1)


class UnpluggedError(OSError):
    """An error of the app's own."""


@pytest.mark.parametrize(
    "policy",
    [
        Retry(),
        Retry.none(),
        Retry(attempts=None, within="1d"),
        Retry(backoff=Backoff.table("5s", "15s", "1h")),
        Retry(backoff=Backoff.exponential("1m", factor=1.5, cap="2h"), jitter=Jitter.plus("30s")),
        Retry(backoff=Backoff.none(), jitter=Jitter.none()),
        Retry(jitter=Jitter.full()),
        Retry(priority=0),
    ],
    ids=str,
)
def test_b8_a_policy_comes_back_as_it_was_kept(policy: Retry) -> None:
    kept = settings_text(policy, MINUTE)
    assert read_settings(kept) == OwnSettings(policy, MINUTE)


def test_b8_rules_by_error_come_back_by_name() -> None:
    patient = Retry(attempts=20, backoff=Backoff.fixed("1m"))
    policy = Retry(attempts=2, permanent=ValueError, by_error={OSError: Backoff.none(), UnpluggedError: patient})
    back = read_settings(settings_text(policy, None)).retry
    assert back is not None
    assert back.for_error(lineage(UnicodeError)) is None
    assert back.for_error(lineage(UnpluggedError)) == patient
    rule = back.for_error(lineage(ConnectionError))
    assert rule is not None
    assert (rule.attempts, rule.backoff) == (2, Backoff.none())
    assert back.for_error(lineage(KeyError)) is back
    assert back.most_attempts == policy.most_attempts == 20
    assert settings_text(back, None) == settings_text(policy, None)


def test_g10_fields_of_a_later_release_are_ignored() -> None:
    kept = json.loads(settings_text(Retry(attempts=3), MINUTE) or "")
    kept["retry"]["mood"] = "patient"
    kept["memory"] = 1024
    assert read_settings(json.dumps(kept)) == OwnSettings(Retry(attempts=3), MINUTE)


@pytest.mark.parametrize("text", ["", "not JSON", '{"retry": 3}', '{"retry": {"attempts": 0, "waits": []}}'])
def test_what_cannot_be_read_leaves_the_kind_in_force(text: str) -> None:
    assert read_settings(text) == OwnSettings()


class OwnBackoff(Backoff):
    """A backoff of the app's own."""


def from_environment() -> Retry:
    return Retry()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"retry": from_environment}, "^retry of one job is stored with it, so it must be a Retry and not a function"),
        ({"retry": 3}, r"^retry must be a Retry, such as Retry\(attempts=3\), got 3"),
        ({"retry": Retry(backoff=OwnBackoff((MINUTE,)))}, "OwnBackoff is a class of your own"),
        ({"retry": Retry(by_error={OSError: OwnBackoff((MINUTE,))})}, "OwnBackoff is a class of your own"),
        ({"timeout": 0}, "^timeout must be longer than 0"),
        ({"timeout": "soon"}, "^timeout "),
        ({"crash_limit": 0}, "^crash_limit must be a whole number of at least 1"),
    ],
)
def test_what_cannot_be_kept_is_refused_by_name(options: dict[str, Any], match: str) -> None:
    app = App(UNUSED)

    @app.job
    async def send() -> None: ...

    with pytest.raises(SettingsError, match=match):
        send.using(**options)


def test_b8_15_attempts_are_refused_where_at_most_11_may_be_set() -> None:
    app = App(UNUSED)

    @app.job(retry=Retry(attempts=4), timeout="1m", bounds=Bounds(attempts=(1, 11), timeout=("1s", "10m")))
    async def flag() -> None: ...

    assert flag.using(retry=Retry(attempts=11), timeout="10m").options.retry == Retry(attempts=11)
    with pytest.raises(SettingsError, match=r"^retry\.attempts of job flag must be from 1 to 11, got 16"):
        flag.using(retry=Retry(attempts=16))
    with pytest.raises(SettingsError, match="got no limit"):
        flag.using(retry=Retry(attempts=None))
    with pytest.raises(SettingsError, match="got 12"):
        flag.using(retry=Retry(by_error={OSError: Retry(attempts=12)}))
    with pytest.raises(SettingsError, match=r"^timeout of job flag must be from 1s to 10m, got 11m"):
        flag.using(timeout="11m")


def test_b8_the_bounds_hold_for_the_kind_itself() -> None:
    app = App(UNUSED)

    async def flag() -> None: ...

    with pytest.raises(SettingsError, match=r"^retry\.attempts of job flag must be from 1 to 11, got 16"):
        app.job(retry=Retry(attempts=16), bounds=Bounds(attempts=(1, 11)))(flag)
    with pytest.raises(SettingsError, match=r"^crash_limit of job flag must be from 1 to 2, got 3"):
        app.job(bounds=Bounds(crash_limit=(1, 2)))(flag)
    with pytest.raises(SettingsError, match=r"^timeout of job flag must be from 1s to 2s, got no limit"):
        app.job(bounds=Bounds(timeout=("1s", "2s")))(flag)


@pytest.mark.parametrize(
    "given", [{"attempts": (0, 3)}, {"attempts": (4, 3)}, {"attempts": 3}, {"timeout": ("2s", "1s")}, {"timeout": "1s"}]
)
def test_bounds_that_bound_nothing_are_refused(given: Any) -> None:
    with pytest.raises(SettingsError, match=r"^bounds\."):
        Bounds(**given)
