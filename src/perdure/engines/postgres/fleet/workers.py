"""Heartbeats of workers, and how a worker is declared dead."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from perdure.clock import Clock
from perdure.domain.jobs.ids import JobId, WorkerId, new_worker_id
from perdure.domain.worker import NewWorker, Phase, ProcessIdentity, WorkerView
from perdure.engines.postgres.database.arrays import number_array, text_array
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.rows import worker_of
from perdure.storage.records import CancelRequest


class WorkerPart:
    """The register of workers, running and dead."""

    def __init__(self, naming: Naming, pool: Pool, clock: Clock | None) -> None:
        self._statements = naming.statements("fleet/workers.sql")
        self._pool = pool
        self._clock = clock

    async def register(self, worker: NewWorker) -> WorkerId:
        """Register a worker; its lease begins now."""
        worker_id = new_worker_id()
        await self._pool.rows(
            self._statements["register"],
            {
                "id": worker_id,
                "name": worker.name,
                "host": worker.process.host,
                "pid": worker.process.pid,
                "process_started": worker.process.started,
                "queues": text_array(worker.queues),
                "concurrency": worker.concurrency,
                "version": worker.version,
                "now": self._now(),
            },
        )
        return worker_id

    async def beat(self, worker_id: WorkerId) -> bool:
        """Renew the worker's lease; False: it has been declared dead."""
        return bool(await self._pool.rows(self._statements["beat"], {"worker": worker_id, "now": self._now()}))

    async def retire(self, worker_id: WorkerId) -> None:
        """Retire a worker that stops cleanly."""
        await self._pool.rows(self._statements["retire"], {"worker": worker_id, "now": self._now()})

    async def report(self, worker_id: WorkerId, phase: Phase) -> None:
        """Store the worker's phase."""
        await self._pool.rows(self._statements["report"], {"worker": worker_id, "phase": phase.value})

    async def wants_quiet(self, worker_id: WorkerId) -> bool:
        """Whether this worker was told to stop claiming for now."""
        rows = await self._pool.rows(self._statements["wants_quiet"], {"worker": worker_id})
        return bool(rows and rows[0][0])

    async def cancel_requests(self, worker_id: WorkerId) -> list[CancelRequest]:
        """The jobs of this worker whose cancellation was requested; also those already taken from it, once."""
        rows = await self._pool.rows(self._statements["cancel_requests"], {"worker": worker_id})
        return [CancelRequest(JobId(job_id), token, why) for job_id, token, why in rows]

    async def workers(self) -> list[WorkerView]:
        """All workers that are not pruned yet, live ones first."""
        return [worker_of(row) for row in await self._pool.rows(self._statements["workers"])]

    async def bury_silent(self, lease: timedelta) -> list[WorkerView]:
        """Declare dead every worker whose last beat is older than `lease` by the database's clock."""
        rows = await self._pool.rows(self._statements["bury_silent"], {"lease": lease, "now": self._now()})
        return [worker_of(row) for row in rows]

    async def bury_gone(self, host: str, is_alive: Callable[[ProcessIdentity], bool]) -> list[WorkerView]:
        """Declare workers of this host dead whose process is gone according to `is_alive`."""
        living = await self._pool.rows(self._statements["living_on_host"], {"host": host})
        gone = [worker_id for worker_id, *process in living if not is_alive(ProcessIdentity(*process))]
        if not gone:
            return []
        rows = await self._pool.rows(self._statements["bury"], {"workers": number_array(gone), "now": self._now()})
        return [worker_of(row) for row in rows]

    async def dead_workers(self) -> frozenset[WorkerId]:
        """All workers that were declared dead, or have retired, and are not pruned yet."""
        return frozenset(WorkerId(row[0]) for row in await self._pool.rows(self._statements["dead_workers"]))

    def _now(self) -> datetime | None:
        return self._clock.now() if self._clock else None
