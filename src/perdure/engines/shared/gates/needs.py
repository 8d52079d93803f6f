"""What a batch of gate requests needs from the database, the same on both engines."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Final

from msgspec import Struct

from perdure.domain.gate import BudgetCheck, GateChanges, GateRequest, GateState, RateCheck, Start
from perdure.domain.jobs.ids import JobId

GATES_KEPT: Final = timedelta(days=1)
"""How long an unused gate is remembered; it is renewed when half of that is over."""

PLACES_KEPT: Final = timedelta(days=1)
"""How long a job may be late for its place in a rate's line before that is forgotten."""

SPENDS_KEPT: Final = timedelta(days=31)
"""No budget counts over a longer time."""

NO_JOB: Final = JobId("")
"""The job of a begun start is not stored."""


class RateNeed(Struct):
    """How much of a rate's line must be read for all requests."""

    span: timedelta
    shortest: timedelta
    limit: int
    fewest: int
    asking: int = 0
    last: GateRequest | None = None  # the request that was counted last

    def widen(self, rate: RateCheck) -> None:
        """Add a check."""
        if rate.per is not self.span:
            self.span = max(self.span, rate.per)
            self.shortest = min(self.shortest, rate.per)
        if rate.limit != self.limit:
            self.limit = max(self.limit, rate.limit)
            self.fewest = min(self.fewest, rate.limit)

    @property
    def most(self) -> int:
        """The most places from its end."""
        return self.limit + self.asking

    @property
    def least(self) -> int:
        """From how many starts on they must be read: with fewer, requests use less than half of any limit."""
        return max(self.fewest // 2 - self.asking, 0)


class BudgetNeed(Struct):
    """How much of a budget's spending must be read for all requests."""

    limits: dict[timedelta, float] = {}  # of each window the lowest
    estimates: float = 0.0
    askers: list[JobId] = []

    def add(self, check: BudgetCheck, job_id: JobId) -> None:
        """Count one request."""
        for window, limit in check.limits:
            self.limits[window] = min(limit, self.limits.get(window, limit))
        self.estimates += check.estimate
        self.askers.append(job_id)

    def tight(self, totals: Mapping[timedelta, float]) -> list[timedelta]:
        """The windows that may not have room for all requests."""
        return [window for window, limit in self.limits.items() if totals[window] + self.estimates > limit]


class Needs:
    """The keys of all gates in a batch, each once."""

    def __init__(self, requests: Sequence[GateRequest]) -> None:
        self.claims = [(request.claim.job_id, request.claim.token) for request in requests]
        self.lines = dict[str, RateNeed]()
        self.askers = list[tuple[str, JobId]]()  # rate's key, job
        self.sizes = dict[tuple[str, JobId], int]()  # concurrency key, job: the limit
        self.funds = dict[str, BudgetNeed]()  # by the budget's name
        self.breakers = set[str]()
        for request in requests:
            self._add(request)
        self.slots = sorted({key for key, _ in self.sizes})

    def _add(self, request: GateRequest) -> None:
        job_id = request.claim.job_id
        for rate in request.rates:
            line = self.lines.get(rate.key)
            if line is None:
                line = self.lines[rate.key] = RateNeed(rate.per, rate.per, rate.limit, rate.limit)
            else:
                line.widen(rate)
            if line.last is not request:  # it may ask for several rates under one key
                line.last = request
                line.asking += 1
                self.askers.append((rate.key, job_id))
        for check in request.concurrency:
            asked = (check.key, job_id)
            self.sizes[asked] = min(check.limit, self.sizes.get(asked, check.limit))
        for budget in request.budgets:
            self.funds.setdefault(budget.name, BudgetNeed()).add(budget, job_id)
        if request.breaker:
            self.breakers.add(request.breaker.name)

    def tokens(self) -> dict[JobId, int]:
        """The newest claim of each job that asks: an older one is lost, and begins nothing."""
        newest = dict[JobId, int]()
        for job_id, token in self.claims:
            newest[job_id] = max(token, newest.get(job_id, token))
        return newest

    def not_waiting(self, changes: GateChanges, lost: Collection[tuple[JobId, int]]) -> list[tuple[str, JobId]]:
        """The concurrency keys under which these jobs no longer wait."""
        gone = {job_id for job_id, token in self.tokens().items() if (job_id, token) in lost}
        waiting = set(changes.waiting)
        return sorted(asked for asked in self.sizes if asked not in waiting and asked[1] not in gone)


def places_left(starts: Sequence[Start], state: GateState) -> list[tuple[str, JobId]]:
    """The keys under which started jobs had a place in the line."""
    placed = {(start.key, start.job_id) for known in state.starts.values() for start in known if not start.begun}
    if not placed:
        return []
    return sorted(placed & {(start.key, start.job_id) for start in starts if start.begun})
