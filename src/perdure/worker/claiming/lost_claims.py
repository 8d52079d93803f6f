"""Gives back leases that stand under this worker's id although it does not run their jobs.

The database may have gone back in time: a standby was promoted that had heard of claims and not of their ends, or a
backup was restored. Then it holds leases of jobs that have ended long ago, or that this worker has never heard of. The
worker beats, so nobody rescues them; only the worker itself can tell. They go back to the queue at no cost, and run
again: what they have done before is lost to the database.

A lease is a stray only if the worker knows nothing of it at two looks in a row, and if every claim whose answer was on
its way at the first look is answered by the second. Should it be mistaken all the same, because the job has ended in
the very moment of the look, nothing happens: the give-back is an acknowledgement, fenced like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import timedelta
from typing import Final

from perdure.domain.jobs.ids import JobId, WorkerId
from perdure.domain.jobs.transition import Transition, released
from perdure.domain.operate.audit import Audited
from perdure.events import Emitter, LeasesReturned
from perdure.lifecycle.loops.loop import Loop
from perdure.storage.port import Store
from perdure.worker.claiming.fetcher import Fetcher

Lease = tuple[JobId, int]
_PAGE: Final = 500


class Strays(Loop[int]):
    """Looks once every heartbeat. `known` are the claims that the worker has, `on_back` hears what went back."""

    name = "strays"
    interval = timedelta(seconds=10)

    def __init__(
        self,
        worker: str,
        store: Store,
        emitter: Emitter,
        fetcher: Fetcher,
        interval: timedelta,
        known: Callable[[], Collection[Lease]],
        on_back: Callable[[], None],
        *,
        audit: Collection[Audited] = frozenset(),
    ) -> None:
        super().__init__(emitter)
        self.interval = interval
        self._worker = worker
        self._store = store
        self._fetcher = fetcher
        self._known = known
        self._on_back = on_back
        self._audit = audit
        self._suspects: frozenset[Lease] = frozenset()
        self._answers_needed = 0
        self.worker_id: WorkerId | None = None

    async def tick(self) -> int:
        """Look, and give back what was a stray at the last look as well; how many went back."""
        worker_id, before = self.worker_id, self._suspects
        self._suspects = frozenset()
        if worker_id is None:
            return 0
        held = await self._store.leases(worker_id)
        if worker_id != self.worker_id:
            return 0
        unknown = frozenset(held).difference(self._known())
        strays = before & unknown if self._fetcher.answered >= self._answers_needed else frozenset()
        self._suspects = unknown - strays
        self._answers_needed = self._fetcher.answered + self._fetcher.is_in_doubt
        return await self._give_back(worker_id, sorted(strays)) if strays else 0

    async def _give_back(self, worker_id: WorkerId, strays: list[Lease]) -> int:
        back: list[Transition] = []
        for start in range(0, len(strays), _PAGE):
            page = strays[start : start + _PAGE]
            claims = await self._store.claims_held(worker_id, [job_id for job_id, _ in page])
            moves = [released(claim) for claim in claims if (claim.job_id, claim.token) in page]
            answer = await self._store.acknowledge(moves, self._audit)
            back += [move for move in moves if move.claim not in answer.stale]
        if back:
            self.emitter.emit(LeasesReturned(self._worker, tuple(move.claim.job_id for move in back)))
            self._store.ring({move.claim.queue for move in back})
            self._on_back()
        return len(back)
