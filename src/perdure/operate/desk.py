"""The operator's desk: what every surface offers, whatever it looks like.

A command is given one id or ref, several of them, or a filter. Ids mean those jobs and no others: what could not be
done to one of them is told by name, and if nothing at all could be done, that is an error. A filter means whatever
matches when the command comes by: it goes through the list once, from the newest to the oldest, in batches that are
each one transaction, so that a job that dies again behind its back is not requeued twice and a long list never holds a
lock.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from perdure.domain.duration import Duration, parse_duration
from perdure.domain.flows.approval import Approval, approval_event, refuse_answer
from perdure.domain.flows.flow import Emission, StepRecord
from perdure.domain.jobs.ids import JobId, as_job_id, is_job_id
from perdure.domain.jobs.job import JobView
from perdure.domain.jobs.log_lines import LINES_KEPT
from perdure.domain.jobs.states import FINAL, JobState
from perdure.domain.operate.audit import AuditEntry
from perdure.domain.worker import WorkerView
from perdure.errors import ArgumentError, ConflictError, NotFoundError
from perdure.kinds.encoding import encode
from perdure.kinds.options import checked_instant, checked_name, checked_ref
from perdure.operate.audit_trail import add_entry, checked_actor, read_trail
from perdure.operate.commands.actions import CANCEL, DELETE, PURGE, REQUEUE, RUN_NOW, Action, mark_as, reschedule_to
from perdure.operate.commands.approvals import asked_by, who_asks
from perdure.operate.commands.calendar import Calendar
from perdure.operate.commands.holds import Holds
from perdure.operate.records import Asking, AuditPage, Changed, JobDetail, JobPage, Overview, Unchanged, Why
from perdure.operate.views.state_words import states_meant
from perdure.operate.why.why import why
from perdure.operate.wording import listed
from perdure.policy.failures import MESSAGE_LIMIT, storable
from perdure.storage.operate.audit import AuditFilter
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Overdue, Page, Tally

Which = JobFilter | str | Iterable[str]
"""Jobs as a command is given them: a filter, an id or ref, or several of these."""

LONGEST_PAGE: Final = 500
MOST_AT_ONCE: Final = 10_000
MOST_LINES: Final = 10_000
_BATCH: Final = 200
_LONGEST_EVENT: Final = 200  # as long as a job may wait for
_EVERYTHING: Final = JobFilter()
_FIRST_PAGE: Final = Page()
_DEAD: Final = frozenset({JobState.DEAD})


class Desk:
    """Views of an open store, and commands that are recorded in its audit trail under the name of `actor`."""

    def __init__(self, store: Store, actor: str) -> None:
        self._store = store
        self.actor = checked_actor(actor)

    @property
    def calendar(self) -> Calendar:
        """The schedules, and what can be done to them."""
        return Calendar(self._store, self.actor)

    @property
    def holds(self) -> Holds:
        """Pauses and breakers, and what can be done to them."""
        return Holds(self._store, self.actor)

    async def now(self) -> datetime:
        """The database's clock: what ages and due times are counted from."""
        return await self._store.now()

    async def job(self, job_id: str, *, lines: int = LINES_KEPT) -> JobDetail:
        """One job with its attempts, families, steps, progress, newest log lines and costs; raises NotFoundError.

        It is named by its id or by its ref.
        """
        if not 0 <= lines <= MOST_LINES:
            raise ArgumentError("lines", f"must be from 0 to {MOST_LINES:,}, got {lines}")
        job = await self._found(job_id)
        known = job.id
        attempts, families = await self._store.attempts(known), await self._store.families(known)
        steps = (await self._store.steps([known])).get(known, [])
        progress = await self._store.progress(known)
        logged = await self._store.lines(known, lines) if lines else ()
        costs = await self._store.costs(known)
        return JobDetail(job, tuple(attempts), tuple(families), tuple(steps), progress, tuple(logged), tuple(costs))

    async def job_by_ref(self, ref: str) -> JobView:
        """The job that people outside know by this name; raises NotFoundError."""
        [*found] = await self._store.jobs(JobFilter(ref=checked_ref(ref)), Page(1))
        if not found:
            raise NotFoundError(f"there is no job with the ref {ref!r}")
        return found[0]

    async def why(self, job_id: str) -> Why:
        """Why a job is not running, and what to do about it; raises NotFoundError."""
        return await why(self._store, await self._found(job_id))

    async def meaning(self, words: str | Iterable[str], kind: str | None = None) -> JobFilter:
        """The filter for states that are told in our words or in those of an app; raises ArgumentError.

        An app's word means the states of the kind that uses it; where several kinds do, `kind` must say which.
        """
        return await states_meant(self._store, words, kind)

    async def jobs(self, which: JobFilter = _EVERYTHING, page: Page = _FIRST_PAGE) -> JobPage:
        """The jobs that match, newest first."""
        _checked(which)
        if not isinstance(page, Page):
            raise ArgumentError("page", f"must be a Page, as in Page(limit=50), got {page!r}")
        if not 1 <= page.limit <= LONGEST_PAGE:
            raise ArgumentError("limit", f"must be from 1 to {LONGEST_PAGE}, got {page.limit}")
        if page.number is None:
            found = await self._store.jobs(which, replace(page, limit=page.limit + 1))
            more = found[page.limit :]
        else:
            found = await self._store.jobs(which, page)
            more = await self._store.jobs(which, Page(1, found[-1].id)) if len(found) == page.limit else []
        shown = tuple(found[: page.limit])
        return JobPage(shown, shown[-1].id if more else None)

    async def children(self, job_id: str) -> list[JobId]:
        """The ids of the jobs that a job has spawned, in their order, at most 10,000; raises NotFoundError."""
        known = (await self._found(job_id)).id
        found: list[JobId] = []
        for family in await self._store.families(known):
            room = MOST_AT_ONCE - len(found)
            found += [child.job_id for child in await self._store.children(known, family.key, 0, room)] if room else []
        return found

    async def steps(self, ids: Iterable[str]) -> dict[JobId, tuple[StepRecord, ...]]:
        """What several jobs have done or wait for, in the order in which that was begun; for a list of jobs.

        They are named by id. Those without steps, and those that do not exist, are left out.
        """
        wanted = list(dict.fromkeys(as_job_id(job_id) for job_id in ids))
        if len(wanted) > LONGEST_PAGE:
            raise ArgumentError("ids", f"may name at most {LONGEST_PAGE} jobs, got {len(wanted)}")
        found = await self._store.steps(wanted) if wanted else {}
        return {job_id: tuple(steps) for job_id, steps in found.items() if steps}

    async def dead_letters(self, which: JobFilter = _EVERYTHING, page: Page = _FIRST_PAGE) -> JobPage:
        """The dead jobs that match, newest first."""
        return await self.jobs(replace(_checked(which), states=_DEAD), page)

    async def count(self, which: JobFilter = _EVERYTHING, *, cap: int = 10_000) -> Tally:
        """How many jobs match.

        At most `cap` jobs are looked at in each queue and state, the last to finish first, or `cap` in all if the
        filter names a mark or ids; if there are more, the answer is `capped`: at least so many.
        """
        [tally] = await self._store.count(_checked(which), (), cap)
        return tally

    async def count_by(self, *by: str, which: JobFilter = _EVERYTHING, cap: int = 10_000) -> list[Tally]:
        """How many jobs match, for each kind, state or queue, or each combination; groups without jobs are left out.

        `cap` is that of `count`.
        """
        if not by:
            raise ArgumentError("by", 'is missing: name "kind", "state", "queue", or several of them')
        return await self._store.count(_checked(which), by, cap)

    async def overdue(self, by: Duration = 0, *, limit: int = 1_000) -> list[Overdue]:
        """Parked jobs whose time has come, passed by at least `by`, and that no worker has made ready yet.

        The oldest due comes first. Between two looks of the workers, a second at most, every job that falls due is one.
        """
        if not 1 <= limit <= MOST_AT_ONCE:
            raise ArgumentError("limit", f"must be from 1 to {MOST_AT_ONCE}, got {limit}")
        return await self._store.overdue(limit, parse_duration("by", by))

    async def audit(
        self,
        *,
        job: str | None = None,
        actor: str | None = None,
        action: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
        before: int | None = None,
    ) -> AuditPage:
        """Who did what, newest first: about a job, by an actor, of an action, from `since` on and before `until`.

        At most 500 entries; the next page is `before=page.next`. Entries stay when their jobs are gone.
        """
        job_id = None if job is None else await self._id_of(job)
        which = AuditFilter(job_id=job_id, actor=actor, action=action, since=since, until=until)
        return await read_trail(self._store, which, limit, before)

    async def record(
        self, action: str, *, job: str | None = None, details: Mapping[str, Any] | None = None
    ) -> AuditEntry:
        """Add an entry of your own to the audit trail, under the name of this desk's actor.

        `details` are stored as JSON, 16 KiB at most. A job that is named by its id need not exist (any more).
        """
        job_id = None if job is None else await self._id_of(job)
        return await add_entry(self._store, self.actor, action, job_id, details)

    async def overview(self) -> Overview:
        """How many jobs stand where, and who works."""
        counts = await self._store.counts()
        return Overview(await self._store.now(), tuple(counts), tuple(await self.workers()))

    async def workers(self) -> list[WorkerView]:
        """All workers not yet forgotten, the living first."""
        return await self._store.workers()

    async def cancel(self, which: Which, *, why: str = "", limit: int = MOST_AT_ONCE) -> Changed:
        """Call jobs off: at once where nobody works on them; a running one is asked to stop."""
        return await self.act(CANCEL, which, limit=limit, why=storable(why, MESSAGE_LIMIT))

    async def requeue(self, which: Which, *, limit: int = MOST_AT_ONCE) -> Changed:
        """Give finished jobs a new life with all their attempts. A filter without states means dead letters."""
        return await self.act(REQUEUE, which, limit=limit)

    async def answer(self, job_id: str, name: str, *, approved: bool, note: str | None = None) -> Approval:
        """Answer what a job asks (`ctx.approval`), also before it does; the first answer holds.

        Raises NotFoundError, and ConflictError if the job has ended or was answered already.
        """
        if not isinstance(approved, bool):  # kept for good, it would be the end of the job
            raise ArgumentError("approved", f"must be True or False, got {approved!r}")
        if note is not None and not isinstance(note, str):
            raise ArgumentError("note", f"must be text or None, got {note!r}")
        job = await self._found(job_id)
        known = job.id
        if job.state in FINAL:
            raise ConflictError(f"job {known} is {job.state}: it asks nothing any more")
        given = Approval(approved, self.actor, note)
        emission = await self._store.emit(approval_event(known, name), encode(given), self.actor)
        if not emission.is_first:
            before = msgspec.json.decode(emission.payload or "null", type=Approval)
            said = "approved" if before.approved else "refused"
            raise ConflictError(f"{name} of job {known} was answered already: {said} by {before.by}")
        self._store.ring({job.queue})
        return given

    async def approvals(self, which: JobFilter = _EVERYTHING) -> list[Asking]:
        """The jobs that wait for an answer, newest first."""
        return await who_asks(self._store, which)

    async def asks(self, job_id: str) -> list[str]:
        """The names of what a job has asked and nobody has answered, in the order of asking."""
        return await asked_by(self._store, await self._id_of(job_id))

    async def emit(self, event: str, payload: str | None = None) -> Emission:
        """Make an event known, with a payload that is JSON, and wake the jobs that wait for it; the first one wins.

        Answers to questions are given by `answer`.
        """
        refuse_answer(checked_name("event", event, _LONGEST_EVENT))
        return await self._store.emit(event, payload, self.actor)

    async def run_now(self, which: Which, *, limit: int = MOST_AT_ONCE) -> Changed:
        """Let parked jobs run without waiting for their time."""
        return await self.act(RUN_NOW, which, limit=limit)

    async def reschedule(self, which: Which, run_at: datetime, *, limit: int = MOST_AT_ONCE) -> Changed:
        """Give parked jobs that come back by themselves another time to do so."""
        return await self.act(reschedule_to(checked_instant("run_at", run_at)), which, limit=limit)

    async def quiet(self, workers: Iterable[str] | None = None, *, quiet: bool = True) -> list[WorkerView]:
        """Ask living workers, by name or id, or all of them, to claim nothing more, or to claim again (quiet=False)."""
        living = [worker for worker in await self.workers() if worker.dead_at is None]
        if workers is not None:
            wanted = list(workers)
            if unknown := [name for name in wanted if not any(_is_called(worker, name) for worker in living)]:
                raise NotFoundError(f"there is no living worker {listed(unknown)}")
            living = [worker for worker in living if any(_is_called(worker, name) for name in wanted)]
        done = set(await self._store.quiet([worker.id for worker in living], self.actor, quiet=quiet))
        return [worker for worker in living if worker.id in done]

    async def mark(self, which: Which, mark: str | None, *, limit: int = MOST_AT_ONCE) -> Changed:
        """Put a mark of your own on jobs, such as "read", in place of any other; None takes it away.

        It is a word of up to 50 characters, for lists and counts (`JobFilter(mark="read")`); jobs run all the same. It
        stays through retries, and a requeue takes it away.
        """
        return await self.act(mark_as(mark), which, limit=limit)

    async def purge(self, which: Which, *, limit: int = MOST_AT_ONCE) -> Changed:
        """Delete finished jobs with their history, for good. A filter without states means dead letters."""
        return await self.act(PURGE, which, limit=limit)

    async def delete(self, which: Which, *, limit: int = MOST_AT_ONCE) -> Changed:
        """Forget jobs whatever their state, with their history; an attempt that runs loses its claim.

        Children that are not final are cancelled, "parent job deleted"; finished children stay. A filter without
        states means finished jobs.
        """
        return await self.act(DELETE, which, limit=limit)

    async def preview(self, action: Action, which: Which, *, limit: int = MOST_AT_ONCE) -> Changed:
        """What a command would do if it were given now; a unique key held by another job is not foreseen."""
        tally = _Tally()
        async for batch in self._batches(action, which, limit, tally):
            able = tally.sort_out(action, batch)
            tally.ids.extend(job.id for job in able)
            if action.stops and not action.for_good:
                tally.asked.extend(job.id for job in able if job.state is JobState.RUNNING)
        return tally.answer(action, which)

    async def act(self, action: Action, which: Which, *, limit: int = MOST_AT_ONCE, why: str = "") -> Changed:
        """Do one of the actions; `why` is kept where the action has a place for it."""
        aim = action.aim(which) if isinstance(which, JobFilter) else JobFilter(states=action.possible)
        tally = _Tally()
        async for batch in self._batches(action, which, limit, tally):
            able = tally.sort_out(action, batch)
            if able:
                ids = tuple(job.id for job in able)
                done = set(await action.apply(self._store, replace(aim, ids=ids), self.actor, why, len(ids)))
                self._store.ring({job.queue for job in able if job.id in done})
                await self._take_down(action, ids, done, tally)
        return tally.answer(action, which)

    async def _take_down(self, action: Action, tried: Sequence[JobId], done: set[JobId], tally: _Tally) -> None:
        """Note what was done, and find out about those that changed while the command was under way."""
        tally.ids.extend(job_id for job_id in tried if job_id in done)
        if action.stops and JobState.RUNNING in action.possible:
            tally.asked.extend(job.id for job in (await self._look_up(done))[0] if job.state is JobState.RUNNING)
        found, missing = await self._look_up(job_id for job_id in tried if job_id not in done)
        tally.missing.extend(missing)
        tally.left.extend(_left(action, job) for job in found)

    def _batches(self, action: Action, which: Which, limit: int, tally: _Tally) -> AsyncIterator[list[JobView]]:
        if isinstance(which, JobFilter):
            return self._matching(action.aim(which), limit, tally)
        return self._named(_names(which), tally)

    async def _id_of(self, name: str) -> JobId:
        """The id of the job of this id or ref; one that is named by its id need not exist."""
        return as_job_id(name) if is_job_id(name) else (await self.job_by_ref(name)).id

    async def _found(self, name: str) -> JobView:
        """The job of this id or ref."""
        if not is_job_id(name):
            return await self.job_by_ref(name)
        job = await self._store.job(as_job_id(name))
        if job is None:
            raise NotFoundError(f"there is no job {as_job_id(name)}")
        return job

    async def _named(self, names: Sequence[str], tally: _Tally) -> AsyncIterator[list[JobView]]:
        ids = list(dict.fromkeys([as_job_id(name) for name in names if is_job_id(name)]))
        for ref in [name for name in names if not is_job_id(name)]:
            try:
                ids.append((await self.job_by_ref(ref)).id)
            except NotFoundError:
                tally.missing.append(ref)
        ids = list(dict.fromkeys(ids))
        for start in range(0, len(ids), _BATCH):
            found, missing = await self._look_up(ids[start : start + _BATCH])
            tally.missing.extend(missing)
            yield found

    async def _matching(self, aim: JobFilter, limit: int, tally: _Tally) -> AsyncIterator[list[JobView]]:
        """Go once through the jobs that match; those beyond the limit only leave their trace in the tally."""
        if limit < 1:
            raise ArgumentError("limit", f"must be at least 1, got {limit}")
        before: JobId | None = None
        while True:
            batch = await self._store.jobs(aim, Page(min(_BATCH, limit) + 1, before))
            room = batch[: min(_BATCH, limit)]
            if room:
                yield room
                limit -= len(room)
                before = room[-1].id
            if len(batch) == len(room):
                return
            if limit == 0:
                tally.more = True
                return

    async def _look_up(self, ids: Iterable[JobId]) -> tuple[list[JobView], list[JobId]]:
        wanted = list(ids)
        if not wanted:
            return [], []
        found = {job.id: job for job in await self._store.jobs(JobFilter(ids=tuple(wanted)), Page(len(wanted)))}
        return [found[job_id] for job_id in wanted if job_id in found], [i for i in wanted if i not in found]


class _Tally(Struct):
    """What a command has done so far."""

    ids: list[JobId] = []
    asked: list[JobId] = []
    missing: list[str] = []
    left: list[Unchanged] = []
    more: bool = False

    def sort_out(self, action: Action, jobs: list[JobView]) -> list[JobView]:
        """Those that it can be done to; the others are noted."""
        self.left.extend(_left(action, job) for job in jobs if not action.can(job))
        return [job for job in jobs if action.can(job)]

    def answer(self, action: Action, which: Which) -> Changed:
        """The account; of named jobs, if nothing could be done to any of them, an error."""
        if not isinstance(which, JobFilter) and not self.ids:
            reasons = listed((f"job {left.id}: {left.why}" for left in self.left), "; ")
            if self.missing:
                raise NotFoundError(f"there is no job {listed(self.missing)}{'; ' if reasons else ''}{reasons}")
            raise ConflictError(f"nothing was {action.verb}: {reasons}")
        return Changed(tuple(self.ids), tuple(self.asked), tuple(self.missing), tuple(self.left), self.more)


def _checked(which: object) -> JobFilter:
    if not isinstance(which, JobFilter):
        raise ArgumentError("which", f'must be a JobFilter, as in JobFilter(states="dead"), got {which!r}')
    return which


def _names(which: str | Iterable[str]) -> list[str]:
    names = list(dict.fromkeys([which] if isinstance(which, str) else which))
    if not names:
        raise ArgumentError("id", "must name at least one job")
    if len(names) > MOST_AT_ONCE:
        raise ArgumentError("id", f"may name at most {MOST_AT_ONCE} jobs, got {len(names)}: use a filter")
    return names


def _is_called(worker: WorkerView, name: str) -> bool:
    return name in {worker.name, str(worker.id)}


def _left(action: Action, job: JobView) -> Unchanged:
    return Unchanged(job.id, job.state, action.why_not(job))
