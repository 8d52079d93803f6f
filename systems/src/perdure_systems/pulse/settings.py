"""The settings of pulse, read from the environment when they are used."""

from __future__ import annotations

import math
from datetime import timedelta
from pathlib import Path
from typing import Final

import msgspec

from perdure import BackupPlan, Opening, Queue, SettingsError, WorkerSettings, interval_from_env
from perdure_systems.kit.settings import Environment, number_from_env, switch_from_env, text_from_env

QUEUE: Final = "pulse"
FOR_TESTS: Final = {
    "PULSE_POLL_INTERVAL": "100ms",
    "PULSE_START_PHASE": "10s",
    "PULSE_STOP_TIMEOUT": "2s",
    "PULSE_MAX_CONSECUTIVE_ERRORS": "3",
    "PULSE_MAX_BACKOFF": "5s",
}
"""The values that tests run with."""

_GRACE_LIMIT: Final = timedelta(seconds=5)
_POLLING: Final = ("ramp", "none", "fixed")
_ON_END: Final = ("cancel", "keep")


class PulseSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the jobs go by; the settings of workers are in `worker_settings`."""

    documents: Path | None
    chunk_characters: int
    model_url: str
    model_timeout: timedelta
    price: float  # of 1,000 characters
    calls_per_minute: int
    daily: float | None
    weekly: float | None
    monthly: float | None
    pause_on_budget: bool
    children_on_end: str
    aggregate_within: timedelta | None
    admin_token: str
    backup_folder: str

    def estimate(self, text: str) -> float:
        """What a call with this text is expected to cost."""
        return round(len(text) / 1_000 * self.price, 6)


def read_settings(environment: Environment | None = None) -> PulseSettings:
    """The settings as they stand in the environment; raises SettingsError, which names the variable."""
    documents = text_from_env("PULSE_DOCUMENTS", environment=environment)
    within = interval_from_env("PULSE_AGGREGATE_WITHIN", "0s", at_least="0s", environment=environment)
    return PulseSettings(
        documents=Path(documents) if documents else None,
        chunk_characters=number_from_env("PULSE_CHUNK_CHARACTERS", 1_000, at_least=100, environment=environment),
        model_url=text_from_env("PULSE_MODEL_URL", "http://127.0.0.1:8194", environment=environment).rstrip("/"),
        model_timeout=interval_from_env("PULSE_MODEL_TIMEOUT", "30s", at_least="100ms", environment=environment),
        price=_amount("PULSE_PRICE_PER_1000_CHARACTERS", 0.01, environment) or 0.0,
        calls_per_minute=number_from_env("PULSE_MAX_CALLS_PER_MINUTE", 60, at_least=1, environment=environment),
        daily=_amount("PULSE_DAILY_BUDGET", 5.0, environment),
        weekly=_amount("PULSE_WEEKLY_BUDGET", 20.0, environment),
        monthly=_amount("PULSE_MONTHLY_BUDGET", 50.0, environment),
        pause_on_budget=switch_from_env("PULSE_PAUSE_ON_BUDGET", default=True, environment=environment),
        children_on_end=_word("PULSE_CHILDREN_ON_END", _ON_END, environment),
        aggregate_within=within or None,
        admin_token=text_from_env("PULSE_ADMIN_TOKEN", environment=environment),
        backup_folder=text_from_env("PULSE_BACKUP_FOLDER", environment=environment),
    )


def worker_settings(environment: Environment | None = None, *, url: str = "") -> WorkerSettings:
    """The settings of pulse's workers; raises SettingsError, which names the variable.

    `url` is that of the database: only SQLite has copies by a plan, PostgreSQL has tools of its own.
    """
    stop_timeout = interval_from_env("PULSE_STOP_TIMEOUT", "20s", at_least="100ms", environment=environment)
    phase = interval_from_env("PULSE_START_PHASE", "5m", environment=environment)
    return WorkerSettings(
        queues=[Queue(QUEUE, opening=Opening(phase))],
        concurrency=number_from_env("PULSE_WORKERS", 1, at_least=1, at_most=1_000, environment=environment),
        polling=_word("PULSE_POLLING", _POLLING, environment),
        poll=interval_from_env("PULSE_POLL_INTERVAL", "5s", at_least="10ms", environment=environment),
        stop_timeout=stop_timeout,
        grace=min(_GRACE_LIMIT, stop_timeout / 4),
        outage_errors=number_from_env("PULSE_MAX_CONSECUTIVE_ERRORS", 5, at_least=1, environment=environment),
        outage_backoff=interval_from_env("PULSE_MAX_BACKOFF", "30s", environment=environment),
        blocked_after=interval_from_env("PULSE_BLOCKED_AFTER", "2s", at_least="100ms", environment=environment),
        slow_store_after=interval_from_env("PULSE_SLOW_STORE_AFTER", "10s", at_least="100ms", environment=environment),
        backup=_backup(environment) if url.startswith("sqlite:") else None,
    )


def _backup(environment: Environment | None) -> BackupPlan | None:
    folder = text_from_env("PULSE_BACKUP_FOLDER", environment=environment)
    if not folder:
        return None
    every = interval_from_env("PULSE_BACKUP_EVERY", "1d", at_least="1m", environment=environment)
    return BackupPlan(folder, every, number_from_env("PULSE_BACKUP_KEEP", 7, at_least=1, environment=environment))


def _word(variable: str, words: tuple[str, ...], environment: Environment | None) -> str:
    """One of these words; the first one if the variable is not set."""
    word = text_from_env(variable, words[0], environment=environment).lower()
    if word not in words:
        raise SettingsError(variable, f"must be one of {', '.join(words)}, got {word!r}")
    return word


def _amount(variable: str, default: float, environment: Environment | None) -> float | None:
    """An amount of money; 0 means that there is no limit."""
    text = text_from_env(variable, str(default), environment=environment)
    try:
        amount = float(text)
    except ValueError:
        amount = math.nan
    if not math.isfinite(amount) or amount < 0:
        raise SettingsError(variable, f"must be an amount of 0 or more, such as 2.50, got {text!r}")
    return amount or None
