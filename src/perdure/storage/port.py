"""What an engine can do, in narrow protocols and the one that joins them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Any, Protocol

from perdure.domain.audit import Audited
from perdure.domain.gate import Cost
from perdure.domain.ids import JobId, WorkerId
from perdure.domain.job import Attempt, Claim, JobView, NewJob, Orphan, Receipt
from perdure.domain.transition import Transition
from perdure.domain.worker import NewWorker, Phase, ProcessIdentity, WorkerView
from perdure.storage.audit import AuditStore
from perdure.storage.diagnosis import DiagnosisStore
from perdure.storage.flows import FlowStore
from perdure.storage.gates import GateStore
from perdure.storage.kinds import KindStore
from perdure.storage.records import (
    ALONE,
    Acknowledged,
    Alongside,
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
from perdure.storage.throttle import ThrottleStore
from perdure.storage.timing import BackupStore, LeaderStore, ScheduleStore


class IntakeStore(Protocol):
    """Where jobs come in."""

    async def insert(self, jobs: Sequence[NewJob]) -> list[Receipt]:
        """Store all these jobs in one transaction and answer in their order.

        A job whose id is stored already is EXISTING, and nothing of it changes. A job with a unique key that another
        job holds is EXISTING and answered with that job's id (REJECT raises DuplicateJobError for the whole batch;
        REPLACE: see OnConflict). Two of one batch with the same key are one job. A job with a delay, or a run_at later
        than the database's now, is scheduled; any other is ready.
        """


class BorrowingStore(Protocol):
    """Where jobs come in through a connection of the caller, as part of the caller's own transaction."""

    def through(self, connection: object, *, blocking: bool = False) -> IntakeStore:
        """Intake through this connection; the store need not be open, and is not opened.

        Its `insert` commits and rolls back nothing that the caller began: the jobs are stored when the caller commits,
        or not at all, and if it raises, the transaction goes on as if it had not been called. On a connection that
        commits every statement by itself the jobs are stored at once, all or none. A connection that does not lead to
        this store's database is refused by name. `blocking`: an async connection is refused, and `insert` never waits
        for an event loop.
        """


class ClaimStore(Protocol):
    """How a worker takes jobs and gives them back."""

    async def claim(self, worker_id: WorkerId, wanted: Sequence[Wanted]) -> list[Claim]:
        """Take ready jobs for this worker, queue by queue as wanted: by priority, then by their place in line.

        What is wanted of one level comes first.
        No job is ever handed to two callers. A worker that was declared dead gets nothing. Every claim carries a
        token higher than any earlier one of the same job, which no other claim of that job has, even one that the
        database has forgotten because it went back in time.
        """

    async def fronts(self, queues: Sequence[str], depth: int) -> list[Front]:
        """For each priority of these queues the first `depth` ready jobs, in the order in which they would be taken."""

    async def acknowledge(
        self, transitions: Sequence[Transition], audit: Collection[Audited] = frozenset()
    ) -> Acknowledged:
        """Write what became of claims. A transition applies only while its claim (id and token) is still held.

        Others change nothing and come back as stale. Together with the move go, in the same transaction: an attempt
        record for each failure, the result, and the unique key (taken back, kept for `dead_for`, or let go, as the
        new state says). A job that must take its key back while another holds it is PAUSED with KEY_HELD and looked
        at again by `promote`. A job that somebody wants called off and that would come back is CANCELLED instead, with
        the reason that was given for it.

        A job that comes back keeps its place in line, unless it has failed (`FAULTS`): then its place is that of the
        time at which it is due again.

        A WAITING transition that awaits events or families makes the job READY at once if one of them is there already
        (EVENT_CAME, CHILDREN_SETTLED); whoever brings one later wakes the job, once. A child's end is counted in its
        family, once, and wakes the parent that waits for it if the family is settled by it. A parent's end cancels
        children that are not final, down to their own, where the family says so: "parent job completed" (or died,
        cancelled).

        What is named in `audit` is written to the audit trail as done by `system`, in the same transaction.
        """

    async def leases(self, worker_id: WorkerId) -> list[tuple[JobId, int]]:
        """Job and token of all that stands under this worker's id."""

    async def claims_held(self, worker_id: WorkerId, job_ids: Sequence[JobId]) -> list[Claim]:
        """The claims of this worker on these jobs, as far as there are any."""

    async def checkpoint(self, claim: Claim, cursor: str | None) -> bool:
        """Keep how far the job has come, for its next attempt; False: the claim is lost, and nothing was written."""


class Effects(Protocol):
    """A transaction in which a handler writes, and with which its acknowledgement is committed (G5).

    It ends once: by `commit_with` or by `undo`, whichever comes first, from whatever thread.
    """

    @property
    def connection(self) -> Any:
        """The driver's connection, for the handler."""

    def block(self) -> AbstractAsyncContextManager[Any]:
        """One use of the connection by the handler; if it raises, what was written in it is undone, and no more."""

    async def commit_with(self, transition: Transition, alongside: Alongside = ALONE) -> Acknowledged:
        """Write what became of the claim, and commit it together with everything that the handler has written.

        The steps and log lines of `alongside` are committed with it, or not at all.

        If the claim was lost, everything is rolled back and the answer says stale. If this raises StoreUnavailable, it
        is not known whether the commit has happened: `acknowledge` the attempt as failed, which is stale if it has.
        Any other error means that it has not.
        """

    async def undo(self, *, forced: bool = False) -> None:
        """Roll back and let go of the connection; nothing happens if it is over. Raises nothing.

        `forced`: from outside, while the handler still uses the connection. A statement that is under way is
        interrupted, nothing more can be written through it, and it is let go of once the handler has ended.
        """


class EffectStore(Protocol):
    """How a handler writes to the same database as its acknowledgement."""

    async def begin_effects(self, *, blocking: bool = False) -> Effects:
        """Begin a transaction on a connection of its own.

        `blocking`: for a handler in a thread, which may call this without an event loop: nothing in it, nor in the
        effects it returns, waits for one.
        """


class WorkerStore(Protocol):
    """How workers show that they live."""

    async def register(self, worker: NewWorker) -> WorkerId:
        """Enter a worker; its lease begins now. Ids are never used again."""

    async def beat(self, worker_id: WorkerId) -> bool:
        """Renew the worker's lease. False: it has been declared dead, and everything it holds is lost."""

    async def retire(self, worker_id: WorkerId) -> None:
        """Declare a worker gone that stops in good order; whatever it still holds is free to be rescued."""

    async def report(self, worker_id: WorkerId, phase: Phase) -> None:
        """Show what the worker is about."""

    async def wants_quiet(self, worker_id: WorkerId) -> bool:
        """Whether somebody has asked this worker to claim nothing more for now."""

    async def cancel_requests(self, worker_id: WorkerId) -> list[CancelRequest]:
        """The jobs held by this worker that somebody wants called off, and why; also those already taken from it."""

    async def workers(self) -> list[WorkerView]:
        """All workers not yet forgotten, the living first."""


class UpkeepStore(Protocol):
    """What keeps the house in order; any number of processes may call these at once."""

    async def promote(
        self, limit: int, *, only: JobId | None = None, aside: Collection[JobId] = frozenset()
    ) -> Promoted:
        """Make parked jobs ready whose time has come, oldest due first, at most `limit`.

        `only`: this job alone. Jobs `aside` are left as they are, and `next_due` does not count them. If one job cannot
        be made ready the call fails, and none is.

        One that needs its unique key back while another job holds it stays parked (PAUSED, KEY_HELD) for 30 seconds.
        A job takes its old place in line. One that has none, or has failed, goes before every job that entered the line
        after it was due, and behind those that are due before it.
        """

    async def overdue(
        self, limit: int, by: timedelta = timedelta(0), aside: Collection[JobId] = frozenset()
    ) -> list[Overdue]:
        """Parked jobs whose time has come, and passed by at least `by`: oldest due first, without those `aside`."""

    async def hasten(self, keys: Collection[str]) -> int:
        """Let the first job that waits for each of these unique keys (PAUSED, KEY_HELD) be due now; how many."""

    async def settle_joined(self, job_ids: Collection[JobId] | None = None) -> int:
        """Count the ends of jobs to which children were joined, and wake the parents that have nothing to wait for.

        Those of these jobs, or of all. One that is gone counts as cancelled. How many children were counted.
        """

    async def bury_silent(self, lease: timedelta) -> list[WorkerView]:
        """Declare dead every worker whose last beat is older than `lease` by the database's clock; return those."""

    async def bury_gone(self, host: str, is_alive: Callable[[ProcessIdentity], bool]) -> list[WorkerView]:
        """Declare dead the living workers of this host whose process `is_alive` denies; return those."""

    async def dead_workers(self) -> frozenset[WorkerId]:
        """All that were declared dead, or have retired, and are not forgotten yet."""

    async def orphans(self, limit: int, after: JobId | None = None) -> list[Orphan]:
        """Claims of workers that are dead or no longer known, by job id, beyond `after`."""

    async def last_return(self, queue: str) -> datetime | None:
        """When the last of the queue's jobs comes back that a dead worker held and that return one by one.

        Those are parked as RETRYING, with the reason CRASHED. None: there are none.
        """

    async def prune(self, keep: Keep, limit: int) -> int:
        """Delete at most `limit` finished jobs, with attempts and all, kept long enough.

        Jobs of a kind that has declared a time of its own go by that, whoever prunes (see KindStore).
        Workers dead for a day are forgotten too, and records of nominal times that are older than 90 days. Jobs that
        are not final are never touched. Old entries of the audit trail go if `keep.audit_trail` says so, at most ten
        times `limit`.

        Jobs that ended by a clock which was ahead, and has been put back since, count as ended now; dead ones among
        them hold their unique keys for as long as they were meant to.
        """


class InsightStore(Protocol):
    """What can be seen from outside."""

    async def now(self) -> datetime:
        """The database's clock."""

    async def job(self, job_id: JobId) -> JobView | None:
        """One job, wherever it stands."""

    async def jobs(self, which: JobFilter, page: Page) -> list[JobView]:
        """The jobs that match, newest (highest id) first."""

    async def attempts(self, job_id: JobId) -> list[Attempt]:
        """The attempts of a job that did not succeed, oldest first, over all its lives."""

    async def costs(self, job_id: JobId) -> list[Cost]:
        """What a job has spent from each budget, as long as that counts for one."""

    async def key_holder(self, key: str) -> JobId | None:
        """The job that holds a unique key now; None: it is free."""

    async def counts(self, cap: int = 10_000) -> list[Count]:
        """How many jobs stand where, at most `cap` counted for each queue and state."""

    async def count(self, which: JobFilter, by: Sequence[str] = (), cap: int = 10_000) -> list[Tally]:
        """How many jobs match: one tally, or one for each group by "kind", "state" and "queue", as far as named.

        At most `cap` jobs are looked at in each queue and state, the last to finish first; with `mark` or `ids`, at
        most `cap` in all. A tally that may be larger for that is `capped`.
        """


class CommandStore(Protocol):
    """What operators change. Each command writes who did what to the audit trail in the same transaction."""

    async def requeue(self, which: JobFilter, actor: str, limit: int) -> list[JobId]:
        """Give finished jobs that match a new life, in one step: counts 0, no error, ready now (A7).

        A job whose unique key another one holds is left alone, as are jobs that are not final. A child that its family
        counts as failed is not counted any more: the family is settled when its new life has ended. One that it counts
        as succeeded stays so.
        """

    async def cancel(self, which: JobFilter, actor: str, why: str, limit: int) -> list[JobId]:
        """Call off jobs that match: parked and ready ones at once; a running one is asked to stop. `why` is kept.

        Children that are not final are cancelled with their parent, where their family says so.
        """

    async def run_now(self, which: JobFilter, actor: str, limit: int) -> list[JobId]:
        """Make parked jobs that match ready at once: what they wait for by the clock is over.

        Such are sleeps, polls and the waits between tries of a step; limits of waits for events and children stay.
        """

    async def reschedule(self, which: JobFilter, due_at: datetime, actor: str, limit: int) -> list[JobId]:
        """Give parked jobs that match, and that would come back by themselves, another time to do so.

        What they wait for by the clock, as with `run_now`, is waited for until then at most.
        """

    async def mark(self, which: JobFilter, mark: str | None, actor: str, limit: int) -> list[JobId]:
        """Put this mark on jobs that match, whatever their state; None takes theirs away. A requeue does that too."""

    async def quiet(self, worker_ids: Sequence[WorkerId], actor: str, *, quiet: bool) -> list[WorkerId]:
        """Ask living workers to claim nothing more, or to claim again; those that are alive come back."""

    async def delete(self, which: JobFilter, actor: str, limit: int) -> list[JobId]:
        """Forget jobs that match, whatever their state; an attempt under way loses its claim.

        Children that are not final are cancelled: "parent job deleted". Finished children stay.
        """

    async def purge(self, which: JobFilter, actor: str, limit: int) -> list[JobId]:
        """Delete finished jobs that match, with their attempts."""


class SignalStore(Protocol):
    """Wake-ups: hints that make things fast, never the only way a thing is noticed."""

    def ring(self, queues: Iterable[str]) -> None:
        """Tell workers, soon and without waiting, that these queues have work."""

    def wakeups(self) -> AbstractAsyncContextManager[AsyncIterator[None]]:
        """Listen: each item means "look now". Items that pile up are one; a lost connection is mended quietly."""

    def await_ends(self, job_ids: Collection[JobId]) -> None:
        """Ask workers, soon and without waiting, to ring when these jobs end; they forget it after 30 seconds."""

    def ring_ended(self, job_ids: Iterable[JobId]) -> None:
        """Ring, soon and without waiting, for those of these ended jobs that are known to be awaited."""

    def ends(self) -> AbstractAsyncContextManager[AsyncIterator[None]]:
        """Listen for the ends of awaited jobs: each item means that one may have ended. Items that pile up are one."""


class SchemaStore(Protocol):
    """The shape of the database."""

    async def migrate(self) -> list[str]:
        """Bring the schema up to date, one process at a time; the names of the migrations applied now."""

    async def check_schema(self) -> None:
        """Raise SchemaError if migrations are missing, were changed after the fact, or are too new for this code.

        Those of the next release are none of its business: neighbours may share a database (G10).
        """


class Store(
    IntakeStore,
    BorrowingStore,
    ClaimStore,
    EffectStore,
    WorkerStore,
    UpkeepStore,
    InsightStore,
    CommandStore,
    AuditStore,
    SignalStore,
    SchemaStore,
    DiagnosisStore,
    ScheduleStore,
    LeaderStore,
    BackupStore,
    FlowStore,
    GateStore,
    ThrottleStore,
    KindStore,
    Protocol,
):
    """An engine: everything above on one object, bound to the event loop that opened it."""

    async def open(self) -> None:
        """Connect. Raises StoreUnavailable or StoreRefused with what to do about it."""

    async def close(self) -> None:
        """Finish what was begun and let go of every connection and thread."""

    def abandon(self) -> None:
        """Let go of every connection and thread of a store whose event loop is closed; blocks meanwhile."""

    def sibling(self) -> Store:
        """Another store on the same database with connections of its own, not yet open: for another thread's loop."""
