"""The line before a rate: which jobs have started, and when the others may (G8).

At most `limit` starts lie in any (t - per, t]. A job that comes too early is given the first place behind all others
and comes back then, so that a backlog of a million jobs is not checked again and again. When it comes back it may start
if there is room among the starts that have *begun*: places only promise room, and one whose job is late or lost blocks
no job for longer than `per`. If there is no room, because earlier jobs were late themselves, it takes the next gap
between the others, or else the end of the line.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from perdure.domain.gate import RateCheck, Start
from perdure.domain.jobs.ids import JobId


class RateLine:
    """The starts of one rate's key, and the places of waiting jobs."""

    def __init__(self, starts: Iterable[Start]) -> None:
        self.begun = list[datetime]()
        self.places = dict[JobId, datetime]()
        for start in starts:
            if start.begun:
                self.begun.append(start.at)
            else:
                self.places[start.job_id] = start.at
        self.begun.sort()
        self.all = sorted([*self.begun, *self.places.values()])

    def used(self, per: timedelta, now: datetime) -> int:
        """How many have begun in the window that ends now."""
        return len(self.begun) - bisect_right(self.begun, now - per)

    def turn(self, job_id: JobId, checks: Sequence[RateCheck], now: datetime) -> datetime:
        """When the job may start; now, if it may at once."""
        place = self.places.get(job_id)
        if place is None:
            return _end(self.all, checks, now)
        if all(self.used(check.per, now) < check.limit for check in checks):
            return now
        if place > now:
            return place
        others = self.all.copy()
        del others[bisect_left(others, place)]
        return _gap(others, checks, now) or _end(others, checks, now)

    def begin(self, job_id: JobId, now: datetime) -> None:
        """Let the job start; its place is free again."""
        self._leave(job_id)
        self.count(now)

    def count(self, at: datetime) -> None:
        """Add a start without a place that has begun then."""
        insort(self.begun, at)
        insort(self.all, at)

    def reserve(self, job_id: JobId, at: datetime) -> None:
        """Move the job to this place."""
        self._leave(job_id)
        self.places[job_id] = at
        insort(self.all, at)

    def _leave(self, job_id: JobId) -> None:
        place = self.places.pop(job_id, None)
        if place is not None:
            del self.all[bisect_left(self.all, place)]


def _end(times: Sequence[datetime], checks: Iterable[RateCheck], now: datetime) -> datetime:
    """The first time behind all others at which there is room."""
    return max([now, *(times[-check.limit] + check.per for check in checks if len(times) >= check.limit)])


def _gap(times: Sequence[datetime], checks: Sequence[RateCheck], now: datetime) -> datetime | None:
    """The first time at which there is room among all others, as far ahead as they are known."""
    at, horizon = now, now + max(check.per for check in checks)
    while at < horizon:
        asked = at
        for check in checks:
            upto = bisect_right(times, at)
            if upto - bisect_right(times, at - check.per) >= check.limit:
                at = times[upto - check.limit] + check.per
        if at == asked:
            return at
    return None
