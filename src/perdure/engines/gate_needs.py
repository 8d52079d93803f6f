"""What a batch of gate requests asks of the database: the part that is common to both engines."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Final

from msgspec import Struct

from perdure.domain.gate import GateChanges, GateRequest, GateState, Start
from perdure.domain.ids import JobId

GATES_KEPT: Final = timedelta(days=1)
"""How long a gate is remembered that nobody uses; it is renewed when half of that is over."""

PLACES_KEPT: Final = timedelta(days=1)
"""How long a job may be late for its place in a rate's line before that is forgotten."""

SPENDS_KEPT: Final = timedelta(days=31)
"""No budget counts over a longer time."""


class Line(Struct):
    """How much of a rate's line must be seen, by the checks of all who ask for it."""

    span: timedelta = timedelta(0)
    limit: int = 0
    fewest: int = sys.maxsize
    asking: int = 0

    @property
    def most(self) -> int:
        """As many places from its end."""
        return self.limit + self.asking

    @property
    def least(self) -> int:
        """From so many starts on they must be seen: fewer use, with those who ask, not even half of any limit."""
        return max(self.fewest // 2 - self.asking, 0)


class Needs:
    """The keys of all gates in a batch, each once."""

    def __init__(self, requests: Sequence[GateRequest]) -> None:
        self.claims = [(request.claim.job_id, request.claim.token) for request in requests]
        self.lines = dict[str, Line]()
        self.askers = list[tuple[str, JobId]]()  # rate's key, job
        self.sizes = dict[tuple[str, JobId], int]()  # concurrency key, job: the limit
        self.windows = dict[str, timedelta]()
        self.breakers = set[str]()
        for request in requests:
            self._add(request)
        self.slots = sorted({key for key, _ in self.sizes})

    def _add(self, request: GateRequest) -> None:
        job_id = request.claim.job_id
        for rate in request.rates:
            line = self.lines.setdefault(rate.key, Line())
            line.span = max(line.span, rate.per)
            line.limit = max(line.limit, rate.limit)
            line.fewest = min(line.fewest, rate.limit)
        for key in {rate.key for rate in request.rates}:
            self.lines[key].asking += 1
            self.askers.append((key, job_id))
        for check in request.concurrency:
            asked = (check.key, job_id)
            self.sizes[asked] = min(check.limit, self.sizes.get(asked, check.limit))
        for budget in request.budgets:
            longest = max((window for window, _ in budget.limits), default=timedelta(0))
            self.windows[budget.name] = max(longest, self.windows.get(budget.name, longest))
        if request.breaker:
            self.breakers.add(request.breaker.name)

    def tokens(self) -> dict[JobId, int]:
        """The newest claim of each job that asks: an older one is lost, and begins nothing."""
        newest = dict[JobId, int]()
        for job_id, token in self.claims:
            newest[job_id] = max(token, newest.get(job_id, token))
        return newest

    def not_waiting(self, changes: GateChanges, lost: Collection[tuple[JobId, int]]) -> list[tuple[str, JobId]]:
        """Under which concurrency keys the jobs that have asked do not wait, as of now."""
        gone = {job_id for job_id, token in self.tokens().items() if (job_id, token) in lost}
        waiting = set(changes.waiting)
        return sorted(asked for asked in self.sizes if asked not in waiting and asked[1] not in gone)


def places_left(starts: Sequence[Start], state: GateState) -> list[tuple[str, JobId]]:
    """Under which keys jobs that have begun had a place in the line."""
    begun = {(start.key, start.job_id) for start in starts if start.begun}
    keys = {key for key, _ in begun}
    placed = {(key, start.job_id) for key in keys for start in state.starts[key] if not start.begun}
    return sorted(begun & placed)
