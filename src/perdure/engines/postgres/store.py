"""The PostgreSQL engine: the whole port on one object, each part of it in its own file.

Connections are few and each kind has its own, so that no part waits for another: intake, claims, acknowledgements, and
one pair for everything else; two more for wake-ups. Each is opened when first needed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta

from perdure.clock import Clock
from perdure.domain.ids import JobId, WorkerId
from perdure.domain.job import Attempt, Claim, JobView, NewJob, Orphan, Receipt
from perdure.domain.transition import Transition
from perdure.domain.worker import NewWorker, ProcessIdentity, WorkerView
from perdure.engines.postgres.acknowledgements import PostgresAcknowledgements
from perdure.engines.postgres.borrowing import PostgresBorrowing
from perdure.engines.postgres.claims import PostgresClaims
from perdure.engines.postgres.commands import PostgresCommands
from perdure.engines.postgres.connections import Pool, Server
from perdure.engines.postgres.diagnosis import PostgresDiagnosis
from perdure.engines.postgres.effects import PostgresEffects
from perdure.engines.postgres.insight import PostgresInsight
from perdure.engines.postgres.intake import PostgresIntake
from perdure.engines.postgres.naming import Naming
from perdure.engines.postgres.schema import PostgresSchema
from perdure.engines.postgres.signals import PostgresSignals
from perdure.engines.postgres.upkeep import PostgresUpkeep
from perdure.engines.postgres.workers import PostgresWorkers
from perdure.storage.diagnosis import Finding, Waiting
from perdure.storage.port import Effects, IntakeStore
from perdure.storage.records import Acknowledged, CancelRequest, Count, JobFilter, Keep, Page, Promoted, Wanted


class PostgresStore:
    """A perdure in a schema of a PostgreSQL database; `clock` replaces the database's own: for tests."""

    def __init__(self, url: str, *, schema: str = "perdure", prefix: str = "", clock: Clock | None = None) -> None:
        self._url = url
        self._clock = clock
        self.naming = Naming(schema, prefix)
        server = Server(url)
        intake, claims, acknowledgements, upkeep = Pool(server, 2), Pool(server), Pool(server), Pool(server)
        desk, bell = Pool(server, 2, prepare=False), Pool(server, durable=False)
        self._pools = (intake, claims, acknowledgements, upkeep, desk, bell)
        self._desk = desk
        self._acknowledgements = PostgresAcknowledgements(self.naming, acknowledgements, clock)
        self._intake = PostgresIntake(self.naming, intake, clock)
        self._borrowing = PostgresBorrowing(self.naming, clock)
        self._effects = PostgresEffects(server, self._acknowledgements)
        self._claims = PostgresClaims(self.naming, claims, clock, self._acknowledgements)
        self._workers = PostgresWorkers(self.naming, upkeep, clock)
        self._upkeep = PostgresUpkeep(self.naming, upkeep, clock)
        self._insight = PostgresInsight(self.naming, desk, clock)
        self._commands = PostgresCommands(self.naming, desk, clock)
        self._diagnosis = PostgresDiagnosis(self.naming, desk)
        self._signals = PostgresSignals(self.naming, server, bell)
        self._schema = PostgresSchema(self.naming, desk)

    async def open(self) -> None:
        """Connect once, to learn early whether that works."""
        for pool in self._pools:
            pool.open()
        await self._desk.rows("SELECT 1")

    async def close(self) -> None:
        """Finish what was begun and let go of every connection."""
        await self._signals.close()
        for pool in self._pools:
            await pool.close()

    def abandon(self) -> None:
        """Let go of every connection once the event loop is closed."""
        for pool in self._pools:
            pool.abandon()

    def sibling(self) -> PostgresStore:
        """Another store on the same database with connections of its own, not yet open."""
        return PostgresStore(self._url, schema=self.naming.schema, prefix=self.naming.prefix, clock=self._clock)

    async def insert(self, jobs: Sequence[NewJob]) -> list[Receipt]:
        """See IntakeStore."""
        return await self._intake.insert(jobs)

    def through(self, connection: object, *, blocking: bool = False) -> IntakeStore:
        """See BorrowingStore."""
        return self._borrowing.through(connection, blocking=blocking)

    async def claim(self, worker_id: WorkerId, wanted: Sequence[Wanted]) -> list[Claim]:
        """See ClaimStore."""
        return await self._claims.claim(worker_id, wanted)

    async def acknowledge(self, transitions: Sequence[Transition]) -> Acknowledged:
        """See ClaimStore."""
        return await self._acknowledgements.acknowledge(transitions)

    async def begin_effects(self, *, blocking: bool = False) -> Effects:
        """See EffectStore."""
        return await self._effects.begin(blocking=blocking)

    async def register(self, worker: NewWorker) -> WorkerId:
        """See WorkerStore."""
        return await self._workers.register(worker)

    async def beat(self, worker_id: WorkerId) -> bool:
        """See WorkerStore."""
        return await self._workers.beat(worker_id)

    async def retire(self, worker_id: WorkerId) -> None:
        """See WorkerStore."""
        await self._workers.retire(worker_id)

    async def cancel_requests(self, worker_id: WorkerId) -> list[CancelRequest]:
        """See WorkerStore."""
        return await self._workers.cancel_requests(worker_id)

    async def workers(self) -> list[WorkerView]:
        """See WorkerStore."""
        return await self._workers.workers()

    async def promote(self, limit: int) -> Promoted:
        """See UpkeepStore."""
        return await self._upkeep.promote(limit)

    async def bury_silent(self, lease: timedelta) -> list[WorkerView]:
        """See UpkeepStore."""
        return await self._workers.bury_silent(lease)

    async def bury_gone(self, host: str, is_alive: Callable[[ProcessIdentity], bool]) -> list[WorkerView]:
        """See UpkeepStore."""
        return await self._workers.bury_gone(host, is_alive)

    async def orphans(self, limit: int, after: JobId | None = None) -> list[Orphan]:
        """See UpkeepStore."""
        return await self._upkeep.orphans(limit, after)

    async def prune(self, keep: Keep, limit: int) -> int:
        """See UpkeepStore."""
        return await self._upkeep.prune(keep, limit)

    async def now(self) -> datetime:
        """See InsightStore."""
        return await self._insight.now()

    async def job(self, job_id: JobId) -> JobView | None:
        """See InsightStore."""
        return await self._insight.job(job_id)

    async def jobs(self, which: JobFilter, page: Page) -> list[JobView]:
        """See InsightStore."""
        return await self._insight.jobs(which, page)

    async def attempts(self, job_id: JobId) -> list[Attempt]:
        """See InsightStore."""
        return await self._insight.attempts(job_id)

    async def counts(self, cap: int = 10_000) -> list[Count]:
        """See InsightStore."""
        return await self._insight.counts(cap)

    async def requeue(self, which: JobFilter, actor: str, limit: int) -> list[JobId]:
        """See CommandStore."""
        return await self._commands.requeue(which, actor, limit)

    async def cancel(self, which: JobFilter, actor: str, why: str, limit: int) -> list[JobId]:
        """See CommandStore."""
        return await self._commands.cancel(which, actor, why, limit)

    async def run_now(self, which: JobFilter, actor: str, limit: int) -> list[JobId]:
        """See CommandStore."""
        return await self._commands.run_now(which, actor, limit)

    async def purge(self, which: JobFilter, actor: str, limit: int) -> list[JobId]:
        """See CommandStore."""
        return await self._commands.purge(which, actor, limit)

    def ring(self, queues: Iterable[str]) -> None:
        """See SignalStore."""
        self._signals.ring(queues)

    def wakeups(self) -> AbstractAsyncContextManager[AsyncIterator[None]]:
        """See SignalStore."""
        return self._signals.wakeups()

    async def diagnose(self) -> list[Finding]:
        """See DiagnosisStore."""
        return await self._diagnosis.diagnose()

    async def waiting(self) -> list[Waiting]:
        """See DiagnosisStore."""
        return await self._diagnosis.waiting()

    async def migrate(self) -> list[str]:
        """See SchemaStore."""
        return await self._schema.migrate()

    async def check_schema(self) -> None:
        """See SchemaStore."""
        await self._schema.check_schema()

    async def schema_dump(self) -> list[str]:
        """The shape of the database as lines of text: for comparing."""
        return await self._schema.schema_dump()
