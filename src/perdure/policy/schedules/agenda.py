"""What to do now about a due schedule: pure, and the only place that knows what `missed` means.

A due nominal time is *prompt* while it is no older than a minute, or than `within` if that is shorter, and then it
fires. An older one was *missed*: SKIP skips it, ALL fires it while it is no older than `within`, and ONCE fires the
latest one for all of them if it is no older than `within`. With SKIP, `within` itself defines prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import Final, Protocol

from msgspec import Struct

from perdure.domain.schedule import Missed, Schedule

_ON_TIME_WITHIN: Final = timedelta(minutes=1)
_INSTANT: Final = timedelta(microseconds=1)
_TIMES_PER_STEP: Final = 500  # nominal times of one schedule in one step; the rest is due at once
_MISSED_TIMES_COUNTED: Final = 1_000
_MISSED_TIMES_RECORDED: Final = 100  # missed times that get a record of their own, the latest ones


class Times(Protocol):
    """The nominal times of a schedule."""

    def next_after(self, instant: datetime) -> datetime | None:
        """The first nominal time later than this instant; None: there is none."""

    def last_before(self, instant: datetime) -> datetime | None:
        """The last nominal time earlier than this instant; None: there is none."""


class Agenda(Struct, frozen=True, kw_only=True):
    """Nominal times that fire now, and the next one.

    `missed` counts the skipped ones, up to 1,000; `let_go` holds the latest of them, up to 100, in order.
    """

    fire: tuple[datetime, ...]
    let_go: tuple[datetime, ...] = ()
    missed: int = 0
    next_at: datetime | None


def agenda(schedule: Schedule, next_at: datetime, now: datetime, times: Times) -> Agenda:
    """What a schedule must do at `now`, given the first nominal time that has not been handled.

    `next_at` may no longer be a nominal time, if the rules of a zone have changed: it is only the starting point.
    """
    window = now - schedule.within
    if schedule.missed is not Missed.ONCE:
        return _agenda(next_at, window, None, now, times)
    prompt = now - min(_ON_TIME_WITHIN, schedule.within)
    late = times.last_before(prompt) if next_at < prompt else None
    if late is None or late < max(next_at, window):
        late = None
    return _agenda(next_at, prompt, late, now, times)


def _agenda(next_at: datetime, since: datetime, late: datetime | None, now: datetime, times: Times) -> Agenda:
    """Fire what is due `since` then, and the late one that replaces the others; earlier ones are skipped."""
    due = _walk(times.next_after(max(next_at, since) - _INSTANT), times.next_after)
    fire = list(islice(takewhile(lambda time: time <= now, due), _TIMES_PER_STEP))
    missed, let_go = _lost(next_at, late or since, times)
    return Agenda(
        fire=tuple([late, *fire] if late else fire),
        let_go=let_go,
        missed=missed,
        next_at=times.next_after(fire[-1] if len(fire) == _TIMES_PER_STEP else max(now, next_at - _INSTANT)),
    )


def _lost(begin: datetime, end: datetime, times: Times) -> tuple[int, tuple[datetime, ...]]:
    """Count the nominal times from `begin` up to, but without, `end`, and list the latest ones."""
    if begin >= end:
        return 0, ()
    lost = takewhile(lambda time: time < end, _walk(times.next_after(begin - _INSTANT), times.next_after))
    kept = takewhile(lambda time: time >= begin, _walk(times.last_before(end), times.last_before))
    return sum(1 for _ in islice(lost, _MISSED_TIMES_COUNTED)), tuple(islice(kept, _MISSED_TIMES_RECORDED))[::-1]


def _walk(first: datetime | None, step: Callable[[datetime], datetime | None]) -> Iterator[datetime]:
    time = first
    while time is not None:
        yield time
        time = step(time)
