"""How often and how soon a failed schedule is retried.

    wait = min(60 min, 2^(n + 1) min) + uniform 0 to 30 s,  n = failures before this one

The engine has the arithmetic; this module has the numbers, and what a schedule may choose for itself.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random, SystemRandom
from typing import Annotated, Final

import apsw
import msgspec
import psycopg.errors

from perdure import Backoff, Bounds, Jitter, Retry
from perdure_systems.flags.settings import DEFAULT_RETRIES, FEWEST_RETRIES, MOST_RETRIES

RETRY_PRIORITY: Final = 2
"""Retries run before all schedules that have not failed yet; those have the priorities 3 to 7."""
BOUNDS: Final = Bounds(attempts=(FEWEST_RETRIES + 1, MOST_RETRIES + 1))

CONTENTION: Final = (
    apsw.BusyError,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.LockNotAvailable,
    psycopg.errors.SerializationFailure,
)
"""Another writer was in the way: this passes within seconds."""
_AFTER_CONTENTION: Final = Backoff.table("5s", "15s", "45s", "2m")
_NOTHING: Final = timedelta(0)
_random: Final = SystemRandom()


class FlagDeleted(LookupError):  # noqa: N818 - says what is the case
    """The flag of a schedule was deleted. A retry cannot help."""


class RetryPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The policy of one schedule, kept with it."""

    max_retries: Annotated[int, msgspec.Meta(ge=FEWEST_RETRIES, le=MOST_RETRIES)] = DEFAULT_RETRIES
    first_wait_seconds: Annotated[int, msgspec.Meta(ge=1, le=3_600)] = 120
    factor: Annotated[float, msgspec.Meta(ge=1, le=10)] = 2
    cap_seconds: Annotated[int, msgspec.Meta(ge=1, le=86_400)] = 3_600
    jitter_seconds: Annotated[int, msgspec.Meta(ge=0, le=600)] = 30

    def retry(self, failures_before: int = 0) -> Retry:
        """The engine's policy for what is left of this one after so many failures."""
        cap = timedelta(seconds=self.cap_seconds)
        first = min(timedelta(seconds=self.first_wait_seconds) * self.factor**failures_before, cap)
        return Retry(
            attempts=self.max_retries + 1 - failures_before,
            backoff=Backoff.exponential(first, factor=self.factor, cap=cap),
            jitter=Jitter.plus(timedelta(seconds=self.jitter_seconds)),
            permanent=FlagDeleted,
            by_error=dict.fromkeys(CONTENTION, _AFTER_CONTENTION),
            priority=RETRY_PRIORITY,
        )


STANDARD: Final = RetryPolicy()


def calculate_next_retry_at(failures_before: int, failed_at: datetime, random: Random = _random) -> datetime:
    """When a schedule that has just failed is tried again, by the standard policy and after so many failures."""
    wait = STANDARD.retry().wait(failures_before, _NOTHING, random)
    return failed_at + (_NOTHING if wait is None else wait)
