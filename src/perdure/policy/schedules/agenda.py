"""What is to be done now about a schedule whose time has come: pure, and the only place that knows what `missed` means.

A nominal time that is due is *prompt* while it is no older than a minute, or than `within` if that is shorter, and then
it fires. An older one was *missed*: SKIP lets it go, ALL fires it while it is no older than `within`, and ONCE lets the
latest one stand for all of them if it is no older than `within`. With SKIP, `within` itself says what is prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import Final, Protocol

from msgspec import Struct

from perdure.domain.schedule import Missed, Schedule

_PROMPT: Final = timedelta(minutes=1)
_INSTANT: Final = timedelta(microseconds=1)
_MOST: Final = 500  # nominal times of one schedule in one step; what is left is due at once
_MOST_COUNTED: Final = 1_000
_MOST_KEPT: Final = 100  # missed times that get a record of their own, the latest ones


class Times(Protocol):
    """The nominal times of a schedule."""

    def next_after(self, instant: datetime) -> datetime | None:
        """The first nominal time later than this instant; None: there is none."""

    def last_before(self, instant: datetime) -> datetime | None:
        """The last nominal time earlier than this instant; None: there is none."""


class Agenda(Struct, frozen=True, kw_only=True):
    """Nominal times that fire now, and the one that is next.

    `missed` counts those that were let go, up to 1,000; `let_go` are the latest of them, up to 100, in order.
    """

    fire: tuple[datetime, ...]
    let_go: tuple[datetime, ...] = ()
    missed: int = 0
    next_at: datetime | None


def agenda(schedule: Schedule, next_at: datetime, now: datetime, times: Times) -> Agenda:
    """Say what a schedule owes at `now`, given the first nominal time that has not been dealt with.

    `next_at` may have ceased to be a nominal time, when the rules of a zone have changed: it is only where to begin.
    """
    window = now - schedule.within
    if schedule.missed is not Missed.ONCE:
        return _agenda(next_at, window, None, now, times)
    prompt = now - min(_PROMPT, schedule.within)
    late = times.last_before(prompt) if next_at < prompt else None
    if late is None or late < max(next_at, window):
        late = None
    return _agenda(next_at, prompt, late, now, times)


def _agenda(next_at: datetime, since: datetime, late: datetime | None, now: datetime, times: Times) -> Agenda:
    """Fire what is due `since` then, and the late one that stands for the others; those before are let go."""
    due = _walk(times.next_after(max(next_at, since) - _INSTANT), times.next_after)
    fire = list(islice(takewhile(lambda time: time <= now, due), _MOST))
    missed, let_go = _lost(next_at, late or since, times)
    return Agenda(
        fire=tuple([late, *fire] if late else fire),
        let_go=let_go,
        missed=missed,
        next_at=times.next_after(fire[-1] if len(fire) == _MOST else max(now, next_at - _INSTANT)),
    )


def _lost(begin: datetime, end: datetime, times: Times) -> tuple[int, tuple[datetime, ...]]:
    """Count the nominal times from `begin` up to, but without, `end`, and tell the latest ones."""
    if begin >= end:
        return 0, ()
    lost = takewhile(lambda time: time < end, _walk(times.next_after(begin - _INSTANT), times.next_after))
    kept = takewhile(lambda time: time >= begin, _walk(times.last_before(end), times.last_before))
    return sum(1 for _ in islice(lost, _MOST_COUNTED)), tuple(islice(kept, _MOST_KEPT))[::-1]


def _walk(first: datetime | None, step: Callable[[datetime], datetime | None]) -> Iterator[datetime]:
    time = first
    while time is not None:
        yield time
        time = step(time)
