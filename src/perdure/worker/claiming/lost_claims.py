"""Gives back leases under this worker's id whose jobs it does not run.

The database may have gone back in time: a standby was promoted that had received claims but not their ends, or a backup
was restored. Then it has leases of jobs that ended long ago, or that this worker never received. The worker sends
heartbeats, so no rescuer takes them; only the worker itself can detect them. They go back to the queue at no cost and
run again: the database has lost the record of their earlier end.

A lease is lost only if the worker knows nothing of it at two looks in a row, and if every claim whose answer was on
its way at the first look is answered by the second. If it is mistaken even then, because the job has ended in
the very moment of the look, nothing happens: the give-back is an acknowledgement, fenced like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import timedelta
from typing import Final

from perdure.domain.jobs.ids import JobId, WorkerId
from perdure.domain.jobs.transition import Transition
from perdure.events import LeasesReturned
from perdure.lifecycle.loops.loop import Loop
from perdure.policy.decide import give_back
from perdure.worker.claiming.fetcher import Fetcher
from perdure.worker.surroundings import Surroundings

Lease = tuple[JobId, int]
_CLAIMS_PER_CALL: Final = 500


class LostClaims(Loop[int]):
    """Checks with every heartbeat. `known` are the worker's claims, `on_back` gets the returned leases."""

    name = "lost_claims"
    interval = timedelta(seconds=10)

    def __init__(
        self,
        worker: str,
        around: Surroundings,
        fetcher: Fetcher,
        *,
        known: Callable[[], Collection[Lease]],
        on_back: Callable[[], None],
    ) -> None:
        super().__init__(around.emitter)
        self.interval = around.settings.heartbeat
        self._worker = worker
        self._store = around.store
        self._fetcher = fetcher
        self._known = known
        self._on_back = on_back
        self._audit = around.settings.audit
        self._suspects: frozenset[Lease] = frozenset()
        self._answers_needed = 0
        self.worker_id: WorkerId | None = None

    async def tick(self) -> int:
        """Check, and give back leases that were unknown at the last check too; returns their number."""
        worker_id, before = self.worker_id, self._suspects
        self._suspects = frozenset()
        if worker_id is None:
            return 0
        held = await self._store.leases(worker_id)
        if worker_id != self.worker_id:
            return 0
        unknown = frozenset(held).difference(self._known())
        lost = before & unknown if self._fetcher.answered >= self._answers_needed else frozenset()
        self._suspects = unknown - lost
        self._answers_needed = self._fetcher.answered + self._fetcher.is_in_doubt
        return await self._give_back(worker_id, sorted(lost)) if lost else 0

    async def _give_back(self, worker_id: WorkerId, lost: list[Lease]) -> int:
        back: list[Transition] = []
        for start in range(0, len(lost), _CLAIMS_PER_CALL):
            page = lost[start : start + _CLAIMS_PER_CALL]
            claims = await self._store.claims_held(worker_id, [job_id for job_id, _ in page])
            moves = [give_back(claim) for claim in claims if (claim.job_id, claim.token) in page]
            answer = await self._store.acknowledge(moves, self._audit)
            back += [move for move in moves if move.claim not in answer.stale]
        if back:
            self.emitter.emit(LeasesReturned(self._worker, tuple(move.claim.job_id for move in back)))
            self._store.ring({move.claim.queue for move in back})
            self._on_back()
        return len(back)
