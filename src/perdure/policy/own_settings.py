"""Settings of one job alone, as the JSON stored with it.

Error types are stored by name, which is all that a policy needs to judge a failure: a tool without the app's code reads
it too. Fields that only a later release knows are ignored. If the JSON cannot be read at all, the kind's own settings
apply: a job must not be stranded by its settings.
"""

from __future__ import annotations

from datetime import timedelta
from functools import lru_cache
from typing import Final

import msgspec
from msgspec import Struct

from perdure.errors import SettingsError
from perdure.policy.retries.backoff import Backoff
from perdure.policy.retries.jitter import Jitter
from perdure.policy.retries.retry import Retry

_NOTHING: Final = timedelta(0)


class _StoredRetry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A policy as stored; `by_error` null: such an error is permanent."""

    attempts: int | None
    waits: tuple[timedelta, ...]
    factor: float = 1
    cap: timedelta | None = None
    low: float = 1
    high: float = 1
    extra: timedelta = _NOTHING
    within: timedelta | None = None
    by_error: dict[str, _StoredRetry | None] = {}
    priority: int | None = None

    @classmethod
    def of(cls, retry: Retry) -> _StoredRetry:
        _refuse_own_classes(retry)
        return cls(
            attempts=retry.attempts,
            waits=retry.backoff.waits,
            factor=float(retry.backoff.factor),
            cap=retry.backoff.cap,
            low=float(retry.jitter.low),
            high=float(retry.jitter.high),
            extra=retry.jitter.extra,
            within=retry.within,
            by_error={name: None if rule is None else cls.of(rule) for name, rule in retry.rules.items()},
            priority=retry.priority,
        )

    def restored(self) -> Retry:
        """The policy itself."""
        plain = Retry(
            attempts=self.attempts,
            backoff=Backoff(self.waits, self.factor, self.cap),
            jitter=Jitter(self.low, self.high, self.extra),
            within=self.within,
            priority=self.priority,
        )
        rules = {name: None if rule is None else rule.restored() for name, rule in self.by_error.items()}
        return plain.with_rules(rules) if rules else plain


class _Stored(Struct, frozen=True, kw_only=True, omit_defaults=True):
    retry: _StoredRetry | None = None
    timeout: timedelta | None = None


class OwnSettings(Struct, frozen=True):
    """The settings of one job alone; None: use the kind's."""

    retry: Retry | None = None
    timeout: timedelta | None = None


_NONE: Final = OwnSettings()


def settings_text(retry: Retry | None, timeout: timedelta | None) -> str | None:
    """The JSON to store with a job; None if nothing was set. A policy that cannot be stored is refused."""
    if retry is None and timeout is None:
        return None
    kept = _Stored(retry=None if retry is None else _StoredRetry.of(retry), timeout=timeout)
    return msgspec.json.encode(kept).decode()


@lru_cache(maxsize=1_000)
def read_settings(text: str | None) -> OwnSettings:
    """The settings stored with a job."""
    if text is None:
        return _NONE
    try:
        kept = msgspec.json.decode(text, type=_Stored)
        return OwnSettings(None if kept.retry is None else kept.retry.restored(), kept.timeout)
    except (msgspec.MsgspecError, SettingsError):
        return _NONE


def checked_own_retry(value: object) -> Retry:
    """A policy that can be stored with a job: a function of the app cannot."""
    if callable(value):
        raise SettingsError(
            "retry", f"of one job is stored with it, so it must be a Retry and not a function such as {value!r}"
        )
    if not isinstance(value, Retry):
        raise SettingsError("retry", f"must be a Retry, such as Retry(attempts=3), got {value!r}")
    return value


def _refuse_own_classes(retry: Retry) -> None:
    for part, known in ((retry, Retry), (retry.backoff, Backoff), (retry.jitter, Jitter)):
        if type(part) is not known:
            raise SettingsError(
                "retry", f"of one job cannot be stored with it: {type(part).__qualname__} is a class of your own"
            )
