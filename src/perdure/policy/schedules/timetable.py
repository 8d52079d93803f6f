"""The instants at which a schedule is due: wall-clock time in a zone, or even intervals.

An expression is about wall-clock time, and twice a year wall-clock time is not what it seems (G6):

- An expression that names hours fires once for each time that it names. A time that is skipped fires at the first
  instant after the gap, together with all other times due then; a time that comes twice fires the first time.
- An expression of every hour (``*/5 * * * *``) names no hour that could be skipped or come twice. It goes by elapsed
  time: it fires whenever the clock on the wall shows a time that it names, and so in both passes of a repeated hour.

Only the zone of Python's standard library is asked, never its inner tables: the two offsets of a wall-clock time, for
`fold` 0 and 1, are equal on ordinary days; the first is smaller in a gap and larger in a repeated hour, and where they
differ the instant of the change is found by halving.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from difflib import get_close_matches
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from perdure.domain.duration import parse_duration
from perdure.errors import ArgumentError
from perdure.policy.schedules.cron import EXAMPLE, Cron

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)
_INSTANT: Final = timedelta(microseconds=1)
_EVERY: Final = "@every"


class Timetable(ABC):
    """The nominal times of a schedule, as aware datetimes in UTC."""

    __slots__ = ()

    @abstractmethod
    def next_after(self, instant: datetime) -> datetime | None:
        """The first nominal time later than this instant; None: there is none."""

    @abstractmethod
    def last_before(self, instant: datetime) -> datetime | None:
        """The last nominal time earlier than this instant; None: there is none."""

    def between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """The nominal times from `start` up to, but without, `end`."""
        time = self.next_after(start - _INSTANT)
        while time is not None and time < end:
            yield time
            time = self.next_after(time)


def timetable(expression: str, tz: str) -> Timetable:
    """Parse a cron expression or ``@every 90s``; refuse one that is unreadable, can never fire, or has an unknown zone.

    Intervals have no zone: they count from the beginning of 1970 in UTC, so that they never drift.
    """
    if not isinstance(expression, str):
        raise ArgumentError("expression", f"must be text, got {type(expression).__name__}; {EXAMPLE}")
    if not isinstance(tz, str):
        raise ArgumentError("tz", f'must be text, got {type(tz).__name__}; write for example "Europe/Berlin"')
    return _timetable(expression, tz)


@lru_cache(maxsize=16_384)
def _timetable(expression: str, tz: str) -> Timetable:
    word, *rest = expression.split(maxsplit=1)[:2] or [""]
    if word.lower() == _EVERY:
        return _Every(_interval(rest[0].strip() if rest else ""))
    cron = Cron(expression)
    zone = read_zone(tz)
    return _Elapsed(cron, zone) if cron.every_hour else _Named(cron, zone)


class _Every(Timetable):
    """Even intervals since the epoch."""

    __slots__ = ("_interval",)

    def __init__(self, interval: timedelta) -> None:
        self._interval = interval

    def next_after(self, instant: datetime) -> datetime | None:
        try:
            return _EPOCH + ((_aware(instant) - _EPOCH) // self._interval + 1) * self._interval
        except OverflowError:
            return None

    def last_before(self, instant: datetime) -> datetime | None:
        try:
            return _EPOCH + ((_aware(instant) - _EPOCH - _INSTANT) // self._interval) * self._interval
        except OverflowError:
            return None


class _OnTheWall(Timetable):
    """Wall-clock times of an expression in a zone. Walls and instants are naive inside, instants in UTC."""

    __slots__ = ("_cron", "_zone")

    def __init__(self, cron: Cron, zone: tzinfo) -> None:
        self._cron = cron
        self._zone = zone

    def next_after(self, instant: datetime) -> datetime | None:
        try:
            here = _aware(instant).astimezone(self._zone).replace(microsecond=0)
            found = self._next(here.replace(tzinfo=None, fold=0), repeated=here.fold == 1)
        except OverflowError:  # the end of the calendar
            return None
        return None if found is None else found.replace(tzinfo=UTC)

    def last_before(self, instant: datetime) -> datetime | None:
        try:
            if _aware(instant).microsecond:
                instant = instant.replace(microsecond=0) + _SECOND
            here = instant.astimezone(self._zone)
            found = self._last(here.replace(tzinfo=None, fold=0), repeated=here.fold == 1)
        except OverflowError:
            return None
        return None if found is None else found.replace(tzinfo=UTC)

    @abstractmethod
    def _next(self, wall: datetime, *, repeated: bool) -> datetime | None:
        """The first instant after this wall-clock time, seen for the second time if `repeated`."""

    @abstractmethod
    def _last(self, wall: datetime, *, repeated: bool) -> datetime | None:
        """The last instant before this wall-clock time, seen for the second time if `repeated`."""

    def _offsets(self, wall: datetime) -> tuple[timedelta, timedelta]:
        """The offsets from UTC before and after the change that this wall-clock time is close to, equal if to none."""
        there = wall.replace(tzinfo=self._zone)
        return there.utcoffset() or timedelta(0), there.replace(fold=1).utcoffset() or timedelta(0)

    def _change(self, wall: datetime) -> datetime:
        """The instant of the change in whose gap or repeated hour this wall-clock time lies."""
        before, after = self._offsets(wall)
        early, late = wall - max(before, after), wall - min(before, after)
        while late - early > _SECOND:
            middle = early + (late - early) // _SECOND // 2 * _SECOND
            if middle.replace(tzinfo=UTC).astimezone(self._zone).utcoffset() == before:
                early = middle
            else:
                late = middle
        return late


class _Named(_OnTheWall):
    """Times at hours that the expression names: each fires once, at its first instant or after the gap."""

    __slots__ = ()

    def _next(self, wall: datetime, *, repeated: bool) -> datetime | None:
        start = self._change(wall) + self._offsets(wall)[0] if repeated else wall + _SECOND
        found = self._cron.at_or_after(start)
        return None if found is None else self._instant(found)

    def _last(self, wall: datetime, *, repeated: bool) -> datetime | None:
        before, after = self._offsets(wall)
        end = self._change(wall) + before if repeated else wall
        found = self._cron.at_or_before(end - _SECOND)
        if found is None:
            return None
        instant = self._instant(found)
        if instant < wall - (after if repeated else before):
            return instant
        gap = instant + self._offsets(found)[0]  # it would fire after the gap, which is not earlier
        found = self._cron.at_or_before(gap - _SECOND)
        return None if found is None else self._instant(found)

    def _instant(self, wall: datetime) -> datetime:
        before, after = self._offsets(wall)
        return self._change(wall) if before < after else wall - before


class _Elapsed(_OnTheWall):
    """Times of every hour: they fire whenever the clock on the wall shows them."""

    __slots__ = ()

    def _next(self, wall: datetime, *, repeated: bool) -> datetime | None:
        before, after = self._offsets(wall)
        found = self._cron.at_or_after(wall + _SECOND)
        if before > after and not repeated:
            change = self._change(wall)
            if found is not None and found < change + before:
                return found - before
            found = self._cron.at_or_after(change + after)
        now = wall - (after if repeated else before)
        while found is not None:
            before, after = self._offsets(found)
            if before >= after:
                return found - before if found - before > now else found - after
            found = self._cron.at_or_after(self._change(found) + after)
        return None

    def _last(self, wall: datetime, *, repeated: bool) -> datetime | None:
        before, after = self._offsets(wall)
        found = self._cron.at_or_before(wall - _SECOND)
        if repeated:
            change = self._change(wall)
            if found is not None and found >= change + after:
                return found - after
            found = self._cron.at_or_before(change + before - _SECOND)
        now = wall - (after if repeated else before)
        while found is not None:
            before, after = self._offsets(found)
            if before >= after:
                return found - after if found - after < now else found - before
            found = self._cron.at_or_before(self._change(found) + before - _SECOND)
        return None


def _aware(instant: datetime) -> datetime:
    if instant.tzinfo is None:
        raise ArgumentError("instant", "has no zone; use datetime(..., tzinfo=UTC)")
    return instant


def _interval(text: str) -> timedelta:
    interval = parse_duration("expression", text)
    if interval < _SECOND:
        raise ArgumentError("expression", f'"{_EVERY} {text}" is shorter than 1s; write for example "{_EVERY} 90s"')
    return interval


def read_zone(tz: str) -> tzinfo:
    """The zone of this name; one that is not known here is refused."""
    if tz == "UTC":  # it is known on machines without zones, too
        return UTC
    if tz == "localtime":
        raise ArgumentError("tz", f'{tz!r} differs between machines; name a zone, for example "Europe/Berlin"')
    try:
        return ZoneInfo(tz)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass
    known = {name.casefold(): name for name in available_timezones()}
    if not known:
        raise ArgumentError(
            "tz", f"{tz[:60]!r} is unknown, because this machine has no time zone data: pip install tzdata"
        )
    near = [known[name] for name in get_close_matches(tz[:60].casefold(), known, n=3)]
    hint = f"did you mean {' or '.join(near)}?" if near else 'write for example "Europe/Berlin" or "UTC"'
    raise ArgumentError("tz", f"{tz[:60]!r} is no time zone that is known here; {hint}")
