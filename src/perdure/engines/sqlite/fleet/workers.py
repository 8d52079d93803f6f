"""Heartbeats of workers, and how a worker is declared dead."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from perdure.domain.jobs.ids import WorkerId, new_worker_id
from perdure.domain.stored_words import read_word
from perdure.domain.worker import NewWorker, Phase, ProcessIdentity, WorkerView
from perdure.engines.shared.database.instants import from_micros, maybe_moment, span
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.drivers import Params, Row
from perdure.engines.sqlite.database.rows import texts, to_document
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.storage.records import CancelRequest


class WorkerPart:
    """The register of workers, running and dead."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.statements("fleet/workers.sql")

    async def register(self, worker: NewWorker) -> WorkerId:
        """Register a worker under an id that was never used before."""
        worker_id = new_worker_id()
        params = {
            "id": worker_id,
            "name": worker.name,
            "host": worker.process.host,
            "pid": worker.process.pid,
            "process_started": worker.process.started,
            "queues": to_document(worker.queues),
            "concurrency": worker.concurrency,
            "version": worker.version,
        }

        await self._database.write(
            lambda transaction: transaction.change(self._sql["register"], params | {"now": transaction.now})
        )
        return worker_id

    async def beat(self, worker_id: WorkerId) -> bool:
        """Renew a lease, unless the worker has been declared dead."""
        return await self._mark("beat", worker_id)

    async def retire(self, worker_id: WorkerId) -> None:
        """Declare a worker gone."""
        await self._mark("retire", worker_id)

    async def report(self, worker_id: WorkerId, phase: Phase) -> None:
        """Store the worker's phase."""
        params = {"worker_id": worker_id, "phase": phase}
        await self._database.write(lambda transaction: transaction.change(self._sql["report"], params))

    async def wants_quiet(self, worker_id: WorkerId) -> bool:
        """Whether this worker was told to stop claiming for now."""
        params = {"worker_id": worker_id}
        return bool(await self._database.read(lambda transaction: transaction.run(self._sql["wants_quiet"], params)))

    async def cancel_requests(self, worker_id: WorkerId) -> list[CancelRequest]:
        """The jobs of this worker whose cancellation was requested; also those taken from it, once."""
        params: dict[str, Any] = {"worker_id": worker_id}
        rows = await self._database.read(lambda transaction: transaction.run(self._sql["cancel_requests"], params))
        revoked = [(job_id, token) for job_id, token, _, is_revoked in rows if is_revoked]
        if revoked:
            forgotten = params | {"rows": to_document(revoked)}
            await self._database.write(lambda transaction: transaction.change(self._sql["forget_revoked"], forgotten))
        return [CancelRequest(job_id, token, why) for job_id, token, why, _ in rows]

    async def workers(self) -> list[WorkerView]:
        """All workers that are not pruned yet, live ones first."""
        return await self._database.read(self._list)

    async def bury_silent(self, lease: timedelta) -> list[WorkerView]:
        """Declare dead the workers whose last beat is older than `lease`; writes nothing if there are none."""
        limit = span(lease)
        living = [worker for worker in await self.workers() if worker.dead_at is None]
        now = self._database.now()
        latest, earliest = from_micros(now), from_micros(now - limit)
        if all(earliest <= worker.beat_at <= latest for worker in living):
            return []

        def bury(transaction: Transaction) -> list[WorkerView]:
            transaction.change(self._sql["put_back_beats"], {"now": transaction.now})
            silent = {"now": transaction.now, "silent_since": transaction.now - limit}
            return self._bury(transaction, "bury_silent", silent)

        return await self._database.write(bury)

    async def bury_gone(self, host: str, is_alive: Callable[[ProcessIdentity], bool]) -> list[WorkerView]:
        """Declare dead the living workers of this host whose process is gone."""
        gone = [
            worker.id
            for worker in await self.workers()
            if worker.dead_at is None and worker.process.host == host and not is_alive(worker.process)
        ]
        if not gone:
            return []
        ids = to_document(gone)
        return await self._database.write(
            lambda transaction: self._bury(transaction, "bury", {"now": transaction.now, "ids": ids})
        )

    async def dead_workers(self) -> frozenset[WorkerId]:
        """All workers that were declared dead, or have retired, and are not pruned yet."""
        rows = await self._database.read(lambda transaction: transaction.run(self._sql["dead_workers"]))
        return frozenset(WorkerId(worker_id) for (worker_id,) in rows)

    async def _mark(self, statement: str, worker_id: WorkerId) -> bool:
        def mark(transaction: Transaction) -> bool:
            return transaction.change(self._sql[statement], {"worker_id": worker_id, "now": transaction.now}) > 0

        return await self._database.write(mark)

    def _bury(self, transaction: Transaction, statement: str, params: Params) -> list[WorkerView]:
        buried = {worker_id for (worker_id,) in transaction.run(self._sql[statement], params)}
        return [worker for worker in self._list(transaction) if worker.id in buried]

    def _list(self, transaction: Transaction) -> list[WorkerView]:
        return [_view(row) for row in transaction.run(self._sql["workers"])]


def _view(row: Row) -> WorkerView:
    worker_id, name, host, pid, started, queues, concurrency, version, started_at, beat_at, dead_at, *rest = row
    running, phase, quiet_at = rest
    return WorkerView(
        id=worker_id,
        name=name,
        process=ProcessIdentity(host, pid, started),
        queues=texts(queues),
        concurrency=concurrency,
        version=version,
        started_at=from_micros(started_at),
        beat_at=from_micros(beat_at),
        dead_at=maybe_moment(dead_at),
        running=running,
        phase=read_word(Phase, phase),
        quiet_at=maybe_moment(quiet_at),
    )
