"""How work resumes without a stampede (C2, C3): pure arithmetic of ramps."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from perdure.domain.duration import Duration, read_spans
from perdure.errors import SettingsError

_FAST_JOBS: Final = 9  # jobs that follow the first one
_WARM_JOBS: Final = 20
_WARM_TIME: Final = timedelta(minutes=2)
_WARM_POLL: Final = timedelta(seconds=1)


class Opening(Struct, frozen=True):
    """How the jobs of dead workers come back: one at once, nine over phase / 5, the rest evenly over phase × 3.

    At most `at_most` come back in one round; the others wait for the next one.
    """

    phase: timedelta = timedelta(minutes=5)
    at_most: int = 1_000

    if TYPE_CHECKING:  # the accepted types; the stored ones stand above

        def __init__(self, phase: Duration = ..., at_most: int = ...) -> None: ...

    def __post_init__(self) -> None:
        read_spans("opening", self, ("phase",))
        if self.phase <= timedelta(0):
            raise SettingsError("opening.phase", "must be longer than 0")
        if isinstance(self.at_most, bool) or not isinstance(self.at_most, int) or self.at_most < 1:
            raise SettingsError("opening.at_most", f"must be a whole number of at least 1, got {self.at_most!r}")

    @property
    def longest(self) -> timedelta:
        """How long the last job of a full round waits."""
        return self.phase / 5 + self.phase * 3

    def waits(self, jobs: int) -> list[timedelta]:
        """When each of so many jobs comes back, counted from now: in order, the last at the end of its stretch."""
        jobs = min(jobs, self.at_most)
        few = min(max(jobs - 1, 0), _FAST_JOBS)
        rest = max(jobs - 1 - _FAST_JOBS, 0)
        warm, slow = self.phase / 5, self.phase * 3
        waits = [timedelta(0)] if jobs else []
        waits += [warm * number / few for number in range(1, few + 1)]
        waits += [warm + slow * number / rest for number in range(1, rest + 1)]
        return waits


class Polling(StrEnum):
    """How often a worker polls for work without a wake-up."""

    FIXED = "fixed"  # every `poll`
    RAMP = "ramp"  # every second while it ramps up, then every `poll`
    NONE = "none"  # only when woken: a lost wake-up is not noticed


def poll_interval(polling: Polling, poll: timedelta, finished: int, open_for: timedelta) -> timedelta | None:
    """The wait before the next poll; None: until a wake-up."""
    if polling is Polling.NONE:
        return None
    if polling is Polling.RAMP and (finished < _WARM_JOBS or open_for < _WARM_TIME):
        return min(_WARM_POLL, poll)
    return poll


def slow_start_limit(full: int, over: timedelta, open_for: timedelta) -> int:
    """How many jobs may run at once after this time: from 1 evenly up to `full`."""
    if open_for >= over:
        return full
    return 1 + (full - 1) * open_for // over
