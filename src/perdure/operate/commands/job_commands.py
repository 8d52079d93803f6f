"""Commands on jobs.

A command takes one id or ref, several of them, or a filter. Ids mean those jobs and no others: the command reports why
it skipped one of them, and raises if it skipped all. A filter means the jobs that match when the command reaches them:
it goes through the list once, from the newest to the oldest, in batches of one transaction each. So a job that dies
again meanwhile is not requeued twice, and a long list never holds a lock.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from perdure.domain.jobs.ids import JobId, as_job_id, is_job_id
from perdure.domain.jobs.job import JobView
from perdure.domain.jobs.states import JobState
from perdure.errors import ArgumentError, ConflictError, NotFoundError
from perdure.kinds.options import checked_instant
from perdure.operate.commands.actions import CANCEL, DELETE, PURGE, REQUEUE, RUN_NOW, Action, mark_as, reschedule_to
from perdure.operate.desk_base import JOBS_PER_COMMAND_LIMIT, DeskBase
from perdure.operate.records import Changed, Unchanged
from perdure.operate.wording import listed
from perdure.storage.records import JobFilter, Page, Reach

Which = JobFilter | str | Iterable[str]
"""The jobs of a command: a filter, an id or ref, or several of these."""

_JOBS_PER_CALL: Final = 200
_REACH_OF_COMMANDS: Final = Reach(50_000, timedelta(seconds=1))  # of one batch: a command has no time limit as a whole


class JobCommands(DeskBase):
    """The part of the desk that changes jobs."""

    async def requeue(self, which: Which, *, why: str | None = None, limit: int = JOBS_PER_COMMAND_LIMIT) -> Changed:
        """Requeue finished jobs, with all attempts available again. A filter without states means dead letters."""
        return await self.act(REQUEUE, which, limit=limit, why=why)

    async def cancel(self, which: Which, *, why: str | None = None, limit: int = JOBS_PER_COMMAND_LIMIT) -> Changed:
        """Cancel jobs: at once if they are not running; a running one is asked to stop."""
        return await self.act(CANCEL, which, limit=limit, why=why)

    async def run_now(self, which: Which, *, why: str | None = None, limit: int = JOBS_PER_COMMAND_LIMIT) -> Changed:
        """Run parked jobs now, without waiting for their time."""
        return await self.act(RUN_NOW, which, limit=limit, why=why)

    async def reschedule(
        self, which: Which, run_at: datetime, *, why: str | None = None, limit: int = JOBS_PER_COMMAND_LIMIT
    ) -> Changed:
        """Change when parked jobs come back."""
        return await self.act(reschedule_to(checked_instant("run_at", run_at)), which, limit=limit, why=why)

    async def mark(
        self, which: Which, mark: str | None, *, why: str | None = None, limit: int = JOBS_PER_COMMAND_LIMIT
    ) -> Changed:
        """Set your own mark on jobs, such as "read", replacing any other; None removes it.

        It is a word of up to 50 characters, for lists and counts (`JobFilter(mark="read")`); it does not affect
        running. It stays through retries; a requeue removes it.
        """
        return await self.act(mark_as(mark), which, limit=limit, why=why)

    async def purge(self, which: Which, *, why: str | None = None, limit: int = JOBS_PER_COMMAND_LIMIT) -> Changed:
        """Delete finished jobs with their history, for good. A filter without states means dead letters."""
        return await self.act(PURGE, which, limit=limit, why=why)

    async def delete(self, which: Which, *, why: str | None = None, limit: int = JOBS_PER_COMMAND_LIMIT) -> Changed:
        """Delete jobs in any state, with their history; a running attempt loses its claim.

        Children that are not final are cancelled, "parent job deleted"; finished children stay. A filter without states
        means finished jobs.
        """
        return await self.act(DELETE, which, limit=limit, why=why)

    async def preview(self, action: Action, which: Which, *, limit: int = JOBS_PER_COMMAND_LIMIT) -> Changed:
        """What a command would do now; it does not check whether another job holds a unique key."""
        tally = _Tally()
        async for batch in self._batches(action, which, limit, tally):
            able = tally.sort_out(action, batch)
            tally.ids.extend(job.id for job in able)
            if action.stops and not action.for_good:
                tally.asked.extend(job.id for job in able if job.state is JobState.RUNNING)
        return tally.answer(action, which)

    async def act(
        self, action: Action, which: Which, *, limit: int = JOBS_PER_COMMAND_LIMIT, why: str | None = None
    ) -> Changed:
        """Run one of the actions; `why` goes to the audit trail, and is stored with cancelled jobs."""
        by = self.by(why)
        aim = action.aim(which) if isinstance(which, JobFilter) else JobFilter(states=action.possible)
        tally = _Tally()
        async for batch in self._batches(action, which, limit, tally):
            able = tally.sort_out(action, batch)
            if able:
                ids = tuple(job.id for job in able)
                done = set(await action.apply(self._store, replace(aim, ids=ids), by, len(ids)))
                self._store.ring({job.queue for job in able if job.id in done})
                await self._take_down(action, ids, done, tally)
        return tally.answer(action, which)

    async def _take_down(self, action: Action, tried: Sequence[JobId], done: set[JobId], tally: _Tally) -> None:
        """Record the result, and check jobs that changed while the command ran."""
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

    async def _named(self, names: Sequence[str], tally: _Tally) -> AsyncIterator[list[JobView]]:
        ids = list(dict.fromkeys([as_job_id(name) for name in names if is_job_id(name)]))
        for ref in [name for name in names if not is_job_id(name)]:
            try:
                ids.append((await self._named_by(ref)).id)
            except NotFoundError:
                tally.missing.append(ref)
        ids = list(dict.fromkeys(ids))
        for start in range(0, len(ids), _JOBS_PER_CALL):
            found, missing = await self._look_up(ids[start : start + _JOBS_PER_CALL])
            tally.missing.extend(missing)
            yield found

    async def _matching(self, aim: JobFilter, limit: int, tally: _Tally) -> AsyncIterator[list[JobView]]:
        """Go once through the matching jobs; those beyond the limit only set `more`."""
        if limit < 1:
            raise ArgumentError("limit", f"must be at least 1, got {limit}")
        before: JobId | None = None
        while True:
            searched = await self._searched(aim, Page(min(_JOBS_PER_CALL, limit) + 1, before), _REACH_OF_COMMANDS)
            batch = searched.jobs
            room = batch[: min(_JOBS_PER_CALL, limit)]
            if room:
                yield room
                limit -= len(room)
                before = room[-1].id
            if len(batch) == len(room):
                if searched.behind is None:
                    return
                before = searched.behind
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
    """The result of a command so far."""

    ids: list[JobId] = []
    asked: list[JobId] = []
    missing: list[str] = []
    left: list[Unchanged] = []
    more: bool = False

    def sort_out(self, action: Action, jobs: list[JobView]) -> list[JobView]:
        """The jobs that it applies to; the others are recorded as skipped."""
        self.left.extend(_left(action, job) for job in jobs if not action.can(job))
        return [job for job in jobs if action.can(job)]

    def answer(self, action: Action, which: Which) -> Changed:
        """The outcome; raises if all named jobs were skipped."""
        if not isinstance(which, JobFilter) and not self.ids:
            reasons = listed((f"job {left.id}: {left.why}" for left in self.left), "; ")
            if self.missing:
                raise NotFoundError(f"there is no job {listed(self.missing)}{'; ' if reasons else ''}{reasons}")
            raise ConflictError(f"nothing was {action.verb}: {reasons}")
        return Changed(tuple(self.ids), tuple(self.asked), tuple(self.missing), tuple(self.left), self.more)


def _names(which: str | Iterable[str]) -> list[str]:
    names = list(dict.fromkeys([which] if isinstance(which, str) else which))
    if not names:
        raise ArgumentError("id", "must name at least one job")
    if len(names) > JOBS_PER_COMMAND_LIMIT:
        raise ArgumentError("id", f"may name at most {JOBS_PER_COMMAND_LIMIT} jobs, got {len(names)}: use a filter")
    return names


def _left(action: Action, job: JobView) -> Unchanged:
    return Unchanged(job.id, job.state, action.why_not(job))
