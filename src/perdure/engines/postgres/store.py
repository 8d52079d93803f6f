"""The PostgreSQL engine: the whole port on one object, each part of it in its own file.

Connections are few and each kind has its own, so that no part waits for another: intake, claims, acknowledgements,
flows, and one pair for everything else; two more for wake-ups. Each is opened when first needed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Never

from perdure.clock import Clock
from perdure.domain.flows.flow import Child, Emission, FamilyView, NewFamily, Progress, StepRecord, StepWrite
from perdure.domain.gate import Cost
from perdure.domain.jobs.ids import JobId, WorkerId
from perdure.domain.jobs.job import Attempt, Claim, JobView, NewJob, Orphan, Receipt
from perdure.domain.jobs.log_lines import LINES_KEPT, LogLine, NewLine
from perdure.domain.jobs.transition import Transition
from perdure.domain.leadership import Lead, LeaderView
from perdure.domain.operate.audit import Audited, AuditEntry
from perdure.domain.schedule import Advance, DueSchedules, Fire, ScheduleView
from perdure.domain.worker import NewWorker, Phase, ProcessIdentity, WorkerView
from perdure.engines.postgres.claims.acknowledgements import NONE, AcknowledgementPart
from perdure.engines.postgres.claims.checkpoints import Checkpoints
from perdure.engines.postgres.claims.claims import ClaimPart
from perdure.engines.postgres.claims.effects import EffectPart
from perdure.engines.postgres.claims.returned_jobs import Returns
from perdure.engines.postgres.database.connections import Pool, Server
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.schema import SchemaPart
from perdure.engines.postgres.fleet.ends import Ends
from perdure.engines.postgres.fleet.leaders import LeaderPart
from perdure.engines.postgres.fleet.signals import SignalPart
from perdure.engines.postgres.fleet.upkeep import UpkeepPart
from perdure.engines.postgres.fleet.workers import WorkerPart
from perdure.engines.postgres.flows.events import EventPart
from perdure.engines.postgres.flows.families import FamilyPart
from perdure.engines.postgres.flows.linking import Linking
from perdure.engines.postgres.flows.log_lines import LinePart
from perdure.engines.postgres.flows.progress import ProgressPart
from perdure.engines.postgres.flows.settling import Settling
from perdure.engines.postgres.flows.steps import StepPart
from perdure.engines.postgres.flows.throttle import ThrottlePart
from perdure.engines.postgres.flows.waking import Waker
from perdure.engines.postgres.gates.breakers import BreakerPart
from perdure.engines.postgres.gates.gates import GatePart
from perdure.engines.postgres.gates.loans import Loans
from perdure.engines.postgres.gates.locks import GateLocks
from perdure.engines.postgres.gates.pauses import PausePart
from perdure.engines.postgres.gates.spend_sums import SpendSums
from perdure.engines.postgres.gates.upkeep import GateUpkeepPart
from perdure.engines.postgres.intake.borrowing import BorrowingPart
from perdure.engines.postgres.intake.intake import IntakePart
from perdure.engines.postgres.operate.commands.commands import CommandPart
from perdure.engines.postgres.operate.diagnosis import DiagnosisPart
from perdure.engines.postgres.operate.pooler_diagnosis import PoolerDiagnosis
from perdure.engines.postgres.operate.views.counting import CountingPart
from perdure.engines.postgres.operate.views.insight import InsightPart
from perdure.engines.postgres.operate.views.kinds import KindPart
from perdure.engines.postgres.operate.views.trail import TrailPart
from perdure.engines.postgres.schedules.firing import FiringPart
from perdure.engines.postgres.schedules.schedules import SchedulePart
from perdure.errors import StoreRefused
from perdure.storage.effects import Effects
from perdure.storage.intake import IntakeStore
from perdure.storage.operate.audit import AuditFilter
from perdure.storage.operate.diagnosis import Finding, ParkedAhead, Waiting
from perdure.storage.records import (
    Acknowledged,
    CancelRequest,
    Count,
    Front,
    JobFilter,
    Keep,
    Overdue,
    Page,
    Promoted,
    Tally,
    Wanted,
)
from perdure.storage.schedules import Timed


class PostgresStore:
    """A perdure in a schema of a PostgreSQL database.

    `listen_url` leads to the same database without a pooler, for LISTEN. `clock` replaces the database's own: for
    tests.
    """

    def __init__(
        self,
        url: str,
        *,
        schema: str = "perdure",
        prefix: str = "",
        listen_url: str | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._url = url
        self._listen_url = listen_url
        self._clock = clock
        self.naming = Naming(schema, prefix)
        server = Server(url)
        intake, claims, acknowledgements, upkeep = Pool(server, 2), Pool(server), Pool(server), Pool(server)
        flows, desk, bell = Pool(server, 2), Pool(server, 2, prepare=False), Pool(server, durable=False)
        gates = Pool(server, 2)
        self._pools = (intake, claims, acknowledgements, upkeep, flows, gates, desk, bell)
        self._desk = desk
        ear = Server(listen_url, field="listen_url") if listen_url else server
        self._ends = Ends(self.naming, ear, bell)
        self._signals = SignalPart(self.naming, server, bell, self._ends.heard, ear)
        self._intake = IntakePart(self.naming, intake, clock, self._signals)
        self._families = FamilyPart(self.naming, flows, clock, self._intake, desk)
        settling = Settling(self.naming, clock, Linking(self.naming, self._families))
        self._returns = returns = Returns()
        self._kinds = KindPart(self.naming, desk, clock)
        self._events = EventPart(self.naming, flows, clock, settling)
        self._steps = StepPart(self.naming, flows, clock)
        self._progress = ProgressPart(self.naming, flows)
        self._lines = LinePart(self.naming, flows)
        self._acknowledgements = AcknowledgementPart(
            *(self.naming, acknowledgements, clock, settling, self._events, returns, self._kinds)
        )
        self._checkpoints = Checkpoints(self.naming, acknowledgements)
        self._borrowing = BorrowingPart(self.naming, clock)
        self._effects = EffectPart(server, self._acknowledgements, self._steps, self._lines)
        self._claims = ClaimPart(self.naming, claims, clock, self._acknowledgements, returns)
        self._workers = WorkerPart(self.naming, upkeep, clock)
        self._upkeep = UpkeepPart(self.naming, upkeep, clock, settling=settling, returns=returns, kinds=self._kinds)
        self._insight = InsightPart(self.naming, desk, clock)
        self._counting = CountingPart(self.naming, desk)
        self._trail = TrailPart(self.naming, desk, clock)
        self._commands = CommandPart(self.naming, desk, clock, settling)
        self._schedules = SchedulePart(self.naming, desk, clock)
        self._firing = FiringPart(self.naming, upkeep, clock, self._intake, self._commands)
        self._leaders = LeaderPart(self.naming, upkeep, clock)
        self.once_per = ThrottlePart(self.naming, flows, clock).once_per
        pooler = PoolerDiagnosis(server, self._signals, ear if listen_url else None)
        self._diagnosis = DiagnosisPart(self.naming, desk, pooler, clock)
        self._schema = SchemaPart(self.naming, desk)
        self.declare_kinds = self._kinds.declare_kinds
        self.kinds = self._kinds.kinds
        self._add_gates(gates, desk)

    def _add_gates(self, pool: Pool, desk: Pool) -> None:
        naming, clock = self.naming, self._clock
        locks = GateLocks(naming, pool, clock)
        waking = Waker(naming, pool, clock, self._signals.ring, self._returns)
        breakers = BreakerPart(naming, pool, clock, locks, waking)
        gates = GatePart(naming, pool, clock, locks, breakers, waking, Loans(naming, pool, clock))
        pauses = PausePart(naming, desk, clock, waking)
        sums = SpendSums(naming, desk, clock)

        self.pass_gates = gates.pass_gates
        self.release_gates = gates.release_gates
        self.loans = gates.loans
        self.return_loans = gates.return_loans
        self.recall_loans = gates.recall_loans
        self.spend = gates.spend
        self.spent = gates.spent
        self.budgets = gates.budgets
        self.report_breakers = breakers.report_breakers
        self.breakers = breakers.breakers
        self.set_breaker = breakers.set_breaker
        self.pause = pauses.pause
        self.resume = pauses.resume
        self.pauses = pauses.pauses
        self.sum_spends = sums.sum_spends
        self.forget_gates = GateUpkeepPart(naming, desk, clock, pauses, sums).forget_gates

    async def open(self) -> None:
        """Connect once, to learn early whether that works, and what stands between us and the server."""
        for pool in self._pools:
            pool.open()
        await self._desk.rows("SELECT 1")

    async def close(self) -> None:
        """Finish what was begun and let go of every connection."""
        await self._signals.close()
        await self._ends.close()
        for pool in self._pools:
            await pool.close()

    def abandon(self) -> None:
        """Let go of every connection once the event loop is closed."""
        for pool in self._pools:
            pool.abandon()

    def sibling(self) -> PostgresStore:
        """Another store on the same database with connections of its own, not yet open."""
        naming, listen_url = self.naming, self._listen_url
        return PostgresStore(
            self._url, schema=naming.schema, prefix=naming.prefix, listen_url=listen_url, clock=self._clock
        )

    async def insert(self, jobs: Sequence[NewJob]) -> list[Receipt]:
        """See IntakeStore."""
        return await self._intake.insert(jobs)

    def through(self, connection: object, *, blocking: bool = False) -> IntakeStore:
        """See BorrowingStore."""
        return self._borrowing.through(connection, blocking=blocking)

    async def claim(self, worker_id: WorkerId, wanted: Sequence[Wanted]) -> list[Claim]:
        """See ClaimStore."""
        return await self._claims.claim(worker_id, wanted)

    async def fronts(self, queues: Sequence[str], depth: int) -> list[Front]:
        """See ClaimStore."""
        return await self._claims.fronts(queues, depth)

    async def leases(self, worker_id: WorkerId) -> list[tuple[JobId, int]]:
        """See ClaimStore."""
        return await self._claims.leases(worker_id)

    async def claims_held(self, worker_id: WorkerId, job_ids: Sequence[JobId]) -> list[Claim]:
        """See ClaimStore."""
        return await self._claims.claims_held(worker_id, job_ids)

    async def acknowledge(self, transitions: Sequence[Transition], audit: Collection[Audited] = NONE) -> Acknowledged:
        """See ClaimStore."""
        return await self._acknowledgements.acknowledge(transitions, audit)

    async def checkpoint(self, claim: Claim, cursor: str | None) -> bool:
        """See ClaimStore."""
        return await self._checkpoints.checkpoint(claim, cursor)

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

    async def report(self, worker_id: WorkerId, phase: Phase) -> None:
        """See WorkerStore."""
        await self._workers.report(worker_id, phase)

    async def wants_quiet(self, worker_id: WorkerId) -> bool:
        """See WorkerStore."""
        return await self._workers.wants_quiet(worker_id)

    async def cancel_requests(self, worker_id: WorkerId) -> list[CancelRequest]:
        """See WorkerStore."""
        return await self._workers.cancel_requests(worker_id)

    async def workers(self) -> list[WorkerView]:
        """See WorkerStore."""
        return await self._workers.workers()

    async def hasten(self, keys: Collection[str]) -> int:
        """Let the first job that waits for each of these unique keys be due now."""
        return await self._upkeep.hasten(keys)

    async def settle_joined(self, job_ids: Collection[JobId] | None = None) -> int:
        """See UpkeepStore."""
        return await self._upkeep.settle_joined(job_ids)

    async def promote(
        self, limit: int, *, only: JobId | None = None, aside: Collection[JobId] = frozenset()
    ) -> Promoted:
        """See UpkeepStore."""
        return await self._upkeep.promote(limit, only=only, aside=aside)

    async def overdue(
        self, limit: int, by: timedelta = timedelta(0), aside: Collection[JobId] = frozenset()
    ) -> list[Overdue]:
        """Parked jobs whose time has come, oldest due first."""
        return await self._upkeep.overdue(limit, by, aside)

    async def bury_silent(self, lease: timedelta) -> list[WorkerView]:
        """See UpkeepStore."""
        return await self._workers.bury_silent(lease)

    async def bury_gone(self, host: str, is_alive: Callable[[ProcessIdentity], bool]) -> list[WorkerView]:
        """See UpkeepStore."""
        return await self._workers.bury_gone(host, is_alive)

    async def dead_workers(self) -> frozenset[WorkerId]:
        """See UpkeepStore."""
        return await self._workers.dead_workers()

    async def orphans(self, limit: int, after: JobId | None = None) -> list[Orphan]:
        """See UpkeepStore."""
        return await self._upkeep.orphans(limit, after)

    async def last_return(self, queue: str) -> datetime | None:
        """See UpkeepStore."""
        return await self._upkeep.last_return(queue)

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

    async def costs(self, job_id: JobId) -> list[Cost]:
        """See InsightStore."""
        return await self._insight.costs(job_id)

    async def key_holder(self, key: str) -> JobId | None:
        """See InsightStore."""
        return await self._insight.key_holder(key)

    async def counts(self, cap: int = 10_000) -> list[Count]:
        """See InsightStore."""
        return await self._insight.counts(cap)

    async def count(self, which: JobFilter, by: Sequence[str] = (), cap: int = 10_000) -> list[Tally]:
        """See InsightStore."""
        return await self._counting.count(which, by, cap)

    async def audit(self, which: AuditFilter, limit: int, before: int | None = None) -> list[AuditEntry]:
        """See AuditStore."""
        return await self._trail.audit(which, limit, before)

    async def record(self, actor: str, action: str, job_id: JobId | None, details: str) -> AuditEntry:
        """See AuditStore."""
        return await self._trail.record(actor, action, job_id, details)

    async def requeue(self, which: JobFilter, actor: str, limit: int) -> list[JobId]:
        """See CommandStore."""
        return await self._commands.requeue(which, actor, limit)

    async def cancel(self, which: JobFilter, actor: str, why: str, limit: int) -> list[JobId]:
        """See CommandStore."""
        return await self._commands.cancel(which, actor, why, limit)

    async def run_now(self, which: JobFilter, actor: str, limit: int) -> list[JobId]:
        """See CommandStore."""
        hurried = await self._commands.run_now(which, actor, limit)
        self._returns.expected = True
        return hurried

    async def reschedule(self, which: JobFilter, due_at: datetime, actor: str, limit: int) -> list[JobId]:
        """See CommandStore."""
        return await self._commands.reschedule(which, due_at, actor, limit)

    async def mark(self, which: JobFilter, mark: str | None, actor: str, limit: int) -> list[JobId]:
        """See CommandStore."""
        return await self._commands.mark(which, mark, actor, limit)

    async def quiet(self, worker_ids: Sequence[WorkerId], actor: str, *, quiet: bool) -> list[WorkerId]:
        """See CommandStore."""
        return await self._commands.quiet(worker_ids, actor, quiet=quiet)

    async def delete(self, which: JobFilter, actor: str, limit: int) -> list[JobId]:
        """See CommandStore."""
        return await self._commands.delete(which, actor, limit)

    async def purge(self, which: JobFilter, actor: str, limit: int) -> list[JobId]:
        """See CommandStore."""
        return await self._commands.purge(which, actor, limit)

    def ring(self, queues: Iterable[str]) -> None:
        """See SignalStore."""
        self._signals.ring(queues)

    def wakeups(self) -> AbstractAsyncContextManager[AsyncIterator[None]]:
        """See SignalStore."""
        return self._signals.wakeups()

    def await_ends(self, job_ids: Collection[JobId]) -> None:
        """See SignalStore."""
        self._ends.await_ends(job_ids)

    def ring_ended(self, job_ids: Iterable[JobId]) -> None:
        """See SignalStore."""
        self._ends.ring_ended(job_ids)

    def ends(self) -> AbstractAsyncContextManager[AsyncIterator[None]]:
        """See SignalStore."""
        return self._ends.ends()

    async def declare_schedules(self, declared: Sequence[Timed]) -> None:
        """See ScheduleStore."""
        await self._schedules.declare_schedules(declared)

    async def save_schedule(self, timed: Timed, actor: str) -> ScheduleView:
        """See ScheduleStore."""
        return await self._schedules.save_schedule(timed, actor)

    async def pause_schedule(
        self, name: str, actor: str, *, until: datetime | None, next_at: datetime | None
    ) -> ScheduleView | None:
        """See ScheduleStore."""
        return await self._schedules.pause_schedule(name, actor, until=until, next_at=next_at)

    async def resume_schedule(self, name: str, actor: str, next_at: datetime | None) -> ScheduleView | None:
        """See ScheduleStore."""
        return await self._schedules.resume_schedule(name, actor, next_at)

    async def delete_schedule(self, name: str, actor: str) -> bool:
        """See ScheduleStore."""
        return await self._schedules.delete_schedule(name, actor)

    async def schedule(self, name: str) -> ScheduleView | None:
        """See ScheduleStore."""
        return await self._schedules.schedule(name)

    async def schedules(self) -> list[ScheduleView]:
        """See ScheduleStore."""
        return await self._schedules.schedules()

    async def due_schedules(self, limit: int, declared: Collection[str]) -> DueSchedules:
        """See ScheduleStore."""
        return await self._firing.due_schedules(limit, declared)

    async def fire(self, advances: Sequence[Advance]) -> list[Fire]:
        """See ScheduleStore."""
        return await self._firing.fire(advances)

    async def fires(self, name: str, limit: int, before: datetime | None = None) -> list[Fire]:
        """See ScheduleStore."""
        return await self._schedules.fires(name, limit, before)

    async def last_fires(self) -> list[Fire]:
        """See ScheduleStore."""
        return await self._schedules.last_fires()

    async def lead(self, name: str, holder: str, lease: timedelta) -> Lead:
        """See LeaderStore."""
        return await self._leaders.lead(name, holder, lease)

    async def step_down(self, name: str, holder: str) -> None:
        """See LeaderStore."""
        await self._leaders.step_down(name, holder)

    async def leaders(self) -> list[LeaderView]:
        """See LeaderStore."""
        return await self._leaders.leaders()

    async def steps(self, job_ids: Sequence[JobId]) -> dict[JobId, list[StepRecord]]:
        """See FlowStore."""
        return await self._steps.steps(job_ids)

    async def save_steps(self, writes: Sequence[StepWrite]) -> list[bool]:
        """See FlowStore."""
        return await self._steps.save_steps(writes)

    async def spawn(self, claim: Claim, family: NewFamily) -> bool:
        """See FlowStore."""
        return await self._families.spawn(claim, family)

    async def planned(self, job_id: JobId, number: int) -> str | None:
        """See FlowStore."""
        return await self._families.planned(job_id, number)

    async def family(self, parent: JobId, key: str) -> FamilyView | None:
        """See FlowStore."""
        return await self._families.family(parent, key)

    async def families(self, parent: JobId) -> list[FamilyView]:
        """See FlowStore."""
        return await self._families.families(parent)

    async def children(self, parent: JobId, key: str, first: int = 0, limit: int = 1_000) -> list[Child]:
        """See FlowStore."""
        return await self._families.children(parent, key, first, limit)

    async def emit(self, event: str, payload: str | None, actor: str) -> Emission:
        """See FlowStore."""
        emission = await self._events.emit(event, payload, actor)
        self._returns.expected = True
        return emission

    async def emitted(self, event: str) -> Emission | None:
        """See FlowStore."""
        return await self._events.emitted(event)

    async def save_progress(self, progress: Mapping[JobId, tuple[Claim, Progress]]) -> None:
        """See FlowStore."""
        await self._progress.save(progress)

    async def progress(self, job_id: JobId) -> Progress | None:
        """See FlowStore."""
        return await self._progress.progress(job_id)

    async def save_lines(self, lines: Sequence[NewLine], keep: int = LINES_KEPT) -> None:
        """See FlowStore."""
        await self._lines.save_lines(lines, keep)

    async def lines(self, job_id: JobId, limit: int = LINES_KEPT, after: int = 0) -> list[LogLine]:
        """See FlowStore."""
        return await self._lines.lines(job_id, limit, after)

    async def back_up(self, path: str) -> Never:
        """See BackupStore: PostgreSQL has tools of its own for this."""
        raise StoreRefused(
            f"perdure does not copy a PostgreSQL database to {path}: use pg_dump, pg_basebackup with an archive of the "
            "WAL, or your provider's snapshots"
        )

    async def diagnose(self) -> list[Finding]:
        """See DiagnosisStore."""
        return await self._diagnosis.diagnose()

    async def waiting(self) -> list[Waiting]:
        """See DiagnosisStore."""
        return await self._diagnosis.waiting()

    async def parked_ahead(self) -> ParkedAhead | None:
        """See DiagnosisStore."""
        return await self._diagnosis.parked_ahead()

    async def redate_parked(self, actor: str, limit: int) -> list[JobId]:
        """See DiagnosisStore."""
        return await self._diagnosis.redate_parked(actor, limit)

    async def migrate(self) -> list[str]:
        """See SchemaStore."""
        return await self._schema.migrate()

    async def check_schema(self) -> None:
        """See SchemaStore."""
        await self._schema.check_schema()

    async def schema_dump(self) -> list[str]:
        """The shape of the database as lines of text: for comparing."""
        return await self._schema.schema_dump()
