"""Which certificates need a job, page by page, however many there are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from perdure import JobFilter, JobState, JobView, Page
from perdure_systems.certificates.jobs import ACTOR, database, desk, now, request
from perdure_systems.certificates.records import Certificate

SHORT_LIVED_HOURS: Final = 24
_REST_LIMIT: Final = timedelta(days=1)


async def pages_of(sql: str, **parameters: object) -> AsyncIterator[list[Certificate]]:
    """The certificates of a list, 500 at a time."""
    after = ""
    while page := await database.all(Certificate, sql, {**parameters, "after": after}):
        yield page
        after = page[-1].id


async def jobs_of(certificates: Sequence[Certificate]) -> dict[str, JobView]:
    """The last job of each, by its id, if it still exists."""
    ids = [one.job_id for one in certificates if one.job_id]
    found = (await (await desk()).jobs(JobFilter(ids=ids), Page(limit=500))).jobs if ids else ()
    return {str(job.id): job for job in found}


async def request_renewals(sql: str) -> int:
    """Enqueue a job for each certificate of a list that needs one; how many are new."""
    at = await now()
    requested = 0
    async for page in pages_of(sql, now=at, short=SHORT_LIVED_HOURS):
        jobs = await jobs_of(page)
        due = [one for one in page if _needs_a_job(one, jobs.get(one.job_id or ""), at)]
        requested += await request_all(due, because="renewal")
    return requested


async def request_all(certificates: Sequence[Certificate], because: str) -> int:
    """Enqueue a job for each, in one transaction; how many are new. One whose job is under way gets no second one."""
    if not certificates:
        return 0
    async with database.transaction() as session:
        requested = [await request(session, one.id, by=ACTOR, because=because) for one in certificates]
    return sum(is_new for _, is_new in requested)


def _needs_a_job(one: Certificate, last: JobView | None, now: datetime) -> bool:
    """Not while a job is active. After a failed or cancelled job, no new one for a while."""
    if last is None or last.state == JobState.SUCCEEDED:
        return True
    rest = min(_REST_LIMIT, timedelta(hours=one.lifetime_hours) / 12)
    return last.finished_at is not None and last.finished_at + rest <= now
