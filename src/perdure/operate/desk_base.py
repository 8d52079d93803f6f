"""The base of all parts of the desk: the store, the actor, and how they find jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from perdure.domain.duration import Duration, parse_duration
from perdure.domain.jobs.ids import JobId, as_job_id, is_job_id
from perdure.domain.jobs.job import JobView
from perdure.domain.operate.audit import By
from perdure.errors import ArgumentError, NotFoundError
from perdure.kinds.options import checked_ref
from perdure.operate.audit_trail import checked_actor, checked_source, checked_why
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page, Reach, Searched
from perdure.storage.time_limits import limited

ROWS_PER_PAGE_LIMIT: Final = 500
JOBS_PER_COMMAND_LIMIT: Final = 10_000
_ROWS_PER_LIST: Final = 100_000
_TIME_PARTS_PER_CALL: Final = 20


class DeskBase:
    """An open store, and who acts on it from which surface."""

    def __init__(self, store: Store, actor: str, source: str = "code", *, time_limit: Duration | None = None) -> None:
        span = None if time_limit is None else parse_duration("time_limit", time_limit)
        self._store = limited(store, span)
        self._reach = None if span is None else Reach(_ROWS_PER_LIST, span / _TIME_PARTS_PER_CALL)
        self.actor = checked_actor(actor)
        self.source = checked_source(source)

    def by(self, why: str | None = None) -> By:
        """The actor of this desk and its source, with a reason: as the audit trail records it."""
        return By(self.actor, checked_why(why), self.source)

    async def now(self) -> datetime:
        """The database's clock: the reference for ages and due times."""
        return await self._store.now()

    async def _id_of(self, name: str) -> JobId:
        """The id of the job with this id or ref; a job named by its id need not exist."""
        return as_job_id(name) if is_job_id(name) else (await self._named_by(name)).id

    async def _found(self, name: str) -> JobView:
        """The job with this id or ref."""
        if not is_job_id(name):
            return await self._named_by(name)
        job = await self._store.job(as_job_id(name))
        if job is None:
            raise NotFoundError(f"there is no job {as_job_id(name)}")
        return job

    async def _named_by(self, ref: str) -> JobView:
        [*found] = await self._store.jobs(JobFilter(ref=checked_ref(ref)), Page(1))
        if not found:
            raise NotFoundError(f"there is no job with the ref {ref!r}")
        return found[0]

    async def _searched(self, which: JobFilter, page: Page, reach: Reach | None) -> Searched:
        if reach is None:
            return Searched(await self._store.jobs(which, page))
        return await self._store.search(which, page, reach)


def checked_filter(which: object) -> JobFilter:
    """Refuse anything but a filter."""
    if not isinstance(which, JobFilter):
        raise ArgumentError("which", f'must be a JobFilter, as in JobFilter(states="dead"), got {which!r}')
    return which
