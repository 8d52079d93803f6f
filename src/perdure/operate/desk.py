"""The operator's desk: what every surface offers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from perdure.domain.duration import Duration
from perdure.domain.flows.approval import Approval, approval_event, refuse_answer
from perdure.domain.flows.flow import Emission
from perdure.domain.jobs.job import NewJob, Receipt
from perdure.domain.jobs.states import FINAL, JobState
from perdure.domain.operate.access import TokenView
from perdure.domain.operate.audit import AuditEntry, By, Note
from perdure.domain.worker import WorkerView
from perdure.errors import ArgumentError, ConflictError, NotFoundError
from perdure.kinds.encoding import encode
from perdure.kinds.options import checked_name
from perdure.operate.alerts.commands import Alerts
from perdure.operate.audit_trail import add_entry
from perdure.operate.bulk.planning import make_plan
from perdure.operate.bulk.records import BulkPage, BulkPlan
from perdure.operate.bulk.starting import found_bulk, start_planned, work_on
from perdure.operate.commands.approvals import asked_by, check_asked, who_asks
from perdure.operate.commands.calendar import Calendar
from perdure.operate.commands.feed import Feed
from perdure.operate.commands.holds import Holds
from perdure.operate.commands.job_commands import JobCommands
from perdure.operate.commands.tokens import check_token, create_token, revoke_token
from perdure.operate.commands.webhooks import Webhooks
from perdure.operate.desk_base import ROWS_PER_PAGE_LIMIT, checked_filter
from perdure.operate.records import Asking
from perdure.operate.views.job_views import JobViews
from perdure.operate.views.system_views import SystemViews
from perdure.operate.wording import listed
from perdure.policy.secrets.redaction import redact_document
from perdure.storage.checking import check_whole
from perdure.storage.operate.bulk import BulkState, BulkView
from perdure.storage.records import JobFilter

_EVENT_NAME_LIMIT_CHARACTERS: Final = 200  # as long as a job may wait for
_EVERYTHING: Final = JobFilter()


class Desk(JobViews, SystemViews, JobCommands):
    """Views of an open store, and commands that are recorded in its audit trail.

    Each command is recorded under the name of `actor`, with its `why`, and with `source`: the surface, and the address
    if there is one, that it came from.

    A query that takes longer than `time_limit` raises StoreTimeout. A list that must check jobs one by one ends after a
    twentieth of that time, and says how far it got (`JobPage.searched_to`). Without a limit, lists check all jobs that
    they must.
    """

    @property
    def calendar(self) -> Calendar:
        """The schedules, and commands for them."""
        return Calendar(self._store, By(self.actor, source=self.source))

    @property
    def holds(self) -> Holds:
        """Pauses, breakers and spending, and commands for them."""
        return Holds(self._store, By(self.actor, source=self.source))

    @property
    def feed(self) -> Feed:
        """The event log that other programs follow."""
        return Feed(self._store, By(self.actor, source=self.source))

    @property
    def webhooks(self) -> Webhooks:
        """Webhooks, and commands for them."""
        return Webhooks(self._store, By(self.actor, source=self.source))

    @property
    def alerts(self) -> Alerts:
        """Rules, channels and alerts, and commands for them."""
        return Alerts(self._store, By(self.actor, source=self.source))

    async def record(
        self, action: str, *, job: str | None = None, details: Mapping[str, Any] | None = None, why: str | None = None
    ) -> AuditEntry:
        """Add an entry of your own to the audit trail, under the name of this desk's actor.

        `details` are stored as JSON, 16 KiB at most. A job that is named by its id may be deleted or unknown.
        """
        job_id = None if job is None else await self._id_of(job)
        return await add_entry(self._store, self.by(why), action, job_id, details)

    async def enqueue(self, job: NewJob, *, why: str | None = None) -> Receipt:
        """Store a job that was made by hand: `desk.enqueue(send.call("ada").job)`. The audit trail records it."""
        receipt = await self._store.enqueue(job, self.by(why))
        self._store.ring({job.queue})
        return receipt

    async def answer(
        self,
        job_id: str,
        name: str,
        *,
        approved: bool,
        note: str | None = None,
        why: str | None = None,
        ahead: bool = True,
    ) -> Approval:
        """Answer a job's question (`ctx.approval`), even before it asks if `ahead` is True; the first answer counts.

        Raises NotFoundError, and ConflictError if the job has ended or was already answered.
        """
        if not isinstance(approved, bool):  # it is stored for good, and would fail the job
            raise ArgumentError("approved", f"must be True or False, got {approved!r}")
        if note is not None and not isinstance(note, str):
            raise ArgumentError("note", f"must be text or None, got {note!r}")
        job = await self._found(job_id)
        known = job.id
        if job.state in FINAL:
            raise ConflictError(f"job {known} is {job.state}: it asks nothing any more")
        if not ahead:
            await check_asked(self._store, job, name)
        given = Approval(approved, self.actor, note)
        details = {"question": name, "after": {"approved": approved, "note": note}}
        noted = Note(action="answer", job_id=known, details=details)
        emission = await self._store.emit(approval_event(known, name), encode(given), self.by(why), noted)
        if not emission.is_first:
            before = msgspec.json.decode(emission.payload or "null", type=Approval)
            said = "approved" if before.approved else "refused"
            raise ConflictError(f"{name} of job {known} was answered already: {said} by {before.by}")
        self._store.ring({job.queue})
        return given

    async def approvals(self, which: JobFilter = _EVERYTHING, *, most: int | None = None) -> list[Asking]:
        """The jobs that wait for an answer, newest first; `most`: only this many of the newest jobs that ask."""
        if which.states is not None and JobState.WAITING not in which.states:
            raise ArgumentError("state", "must be waiting: no other jobs ask; or leave it out")
        if most is not None:
            check_whole("most", most, 1, ROWS_PER_PAGE_LIMIT)
        return await who_asks(self._store, which, most)

    async def asks(self, job_id: str) -> list[str]:
        """The names of a job's open questions, in the order of asking."""
        return await asked_by(self._store, await self._id_of(job_id))

    async def emit(self, event: str, payload: str | None = None, *, why: str | None = None) -> Emission:
        """Emit an event with a JSON payload, and wake the jobs waiting for it; the first emission wins.

        Use `answer` for answers to questions.
        """
        refuse_answer(checked_name("event", event, _EVENT_NAME_LIMIT_CHARACTERS))
        noted = Note(action="emit", details={"event": event})
        emission = await self._store.emit(event, payload, self.by(why), noted)
        return replace(emission, payload=redact_document(emission.payload))

    async def quiet(
        self,
        workers: Iterable[str] | None = None,
        *,
        quiet: bool = True,
        why: str | None = None,
        dry_run: bool = False,
    ) -> list[WorkerView]:
        """Tell running workers, by name or id, or all of them, to stop claiming, or to claim again (quiet=False).

        `dry_run`: tell none, and return those that would be told.
        """
        living = [worker for worker in await self.workers() if worker.dead_at is None]
        if workers is not None:
            wanted = list(workers)
            if unknown := [name for name in wanted if not any(_is_called(worker, name) for worker in living)]:
                raise NotFoundError(f"there is no running worker {listed(unknown)}")
            living = [worker for worker in living if any(_is_called(worker, name) for name in wanted)]
        if dry_run:
            return living
        done = set(await self._store.quiet([worker.id for worker in living], self.by(why), quiet=quiet))
        return [worker for worker in living if worker.id in done]

    async def plan(
        self,
        action: str,
        which: JobFilter,
        *,
        mark: str | None = None,
        run_at: datetime | timedelta | None = None,
        limit: int | None = None,
    ) -> BulkPlan:
        """The counted dry run of a bulk command: `desk.plan("requeue", JobFilter(kind="mail"))`.

        Actions are requeue, cancel, run_now, reschedule (to `run_at`), mark (as `mark`), purge and delete. `limit`
        means at most this many jobs, newest first. Give the plan, or its token, to `start_bulk`.
        """
        return await make_plan(self._store, action, checked_filter(which), mark=mark, run_at=run_at, limit=limit)

    async def start_bulk(self, plan: BulkPlan | str, *, why: str | None = None) -> BulkView:
        """Start a planned bulk command: workers and desks run it in batches; `work_on_bulk` runs it here.

        Raises ConflictError if the dry run is older than ten minutes, was of another command, was started already, or
        if a different number of jobs matches now.
        """
        return await start_planned(self._store, plan, self.by(why))

    def work_on_bulk(self, bulk_id: str) -> AsyncIterator[BulkView]:
        """Run a bulk command here until it has ended; yields it after each batch, no matter which process ran that."""
        return work_on(self._store, bulk_id, f"{self.source} {self.actor}")

    async def bulk(self, bulk_id: str) -> BulkView:
        """A bulk command with its progress and the skipped jobs; raises NotFoundError."""
        return found_bulk(bulk_id, await self._store.bulk(bulk_id))

    async def bulks(self, limit: int = 50, before: str | None = None) -> BulkPage:
        """A page of the bulk commands, newest first, or of those started before the one with this id."""
        check_whole("limit", limit, 1, ROWS_PER_PAGE_LIMIT)
        if before is not None:
            found_bulk(before, await self._store.bulk(before))
        found = await self._store.bulks(limit + 1, before)
        shown = tuple(found[:limit])
        return BulkPage(shown, shown[-1].id if len(found) > limit else None)

    async def stop_bulk(self, bulk_id: str, *, why: str | None = None) -> BulkView:
        """Stop a bulk command after its current batch; finished batches stay.

        Raises NotFoundError, and ConflictError if it has ended.
        """
        before = await self.bulk(bulk_id)
        if before.state is not BulkState.RUNNING:
            raise ConflictError(f"bulk command {bulk_id} is {before.state} already")
        return found_bulk(bulk_id, await self._store.stop_bulk(bulk_id, self.by(why)))

    async def tokens(self) -> list[TokenView]:
        """All access tokens, also revoked and expired ones, oldest first."""
        return await self._store.tokens()

    async def create_token(
        self, name: str, scope: str, *, expires: Duration | None = None, why: str | None = None
    ) -> tuple[TokenView, str]:
        """Make an access token and return it with its secret, which cannot be shown again.

        `scope` is "read", "operate" or "admin". Raises ConflictError if the name is taken.
        """
        return await create_token(self._store, self.by(why), name, scope, expires)

    async def revoke_token(self, id_or_name: str, *, why: str | None = None) -> TokenView:
        """Revoke an access token; sessions that were opened with it end.

        Raises NotFoundError, and ConflictError if it is revoked already.
        """
        return await revoke_token(self._store, self.by(why), id_or_name)

    async def check_token(self, secret: str) -> TokenView | None:
        """The token of this secret, or None if it is unknown, revoked or expired."""
        return await check_token(self._store, secret)


def _is_called(worker: WorkerView, name: str) -> bool:
    return name in {worker.name, str(worker.id)}
