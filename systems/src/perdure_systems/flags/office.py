"""What can be done with schedules: find, list, make, cancel, retry, and look at their past and future."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from http import HTTPStatus
from typing import Final

import msgspec

from perdure import ArgumentError, Desk, JobFilter, JobNotSuccessful, JobView, NotFoundError, Page
from perdure_systems.flags.jobs import ACTOR, APPLY, INVALIDATE, app, database, invalidation_of
from perdure_systems.flags.policy import RetryPolicy
from perdure_systems.flags.schedules import (
    APPLIED,
    CANCELLED,
    FAILED,
    NewSchedule,
    Schedule,
    call_for,
    schedule_of,
    status_of,
    tag_of,
)
from perdure_systems.flags.store import find_flag
from perdure_systems.kit.web import Problem

_STOPPING: Final = "5s"


class Found(msgspec.Struct, frozen=True):
    """A schedule's job, and the job that invalidates the cache after it."""

    job: JobView
    cache: JobView | None

    @property
    def schedule(self) -> Schedule:
        """As people see it."""
        return schedule_of(self.job, self.cache)


class Try(msgspec.Struct, frozen=True, rename="camel"):
    """A try that failed. `part` is what was tried: the flag, or its cache."""

    part: str
    number: int
    started_at: datetime
    finished_at: datetime
    error: str
    reason: str
    next_retry_at: datetime | None
    worker: str


class Deed(msgspec.Struct, frozen=True):
    """What a person did to a schedule."""

    at: datetime
    by: str
    action: str


class History(msgspec.Struct, frozen=True):
    """All failed attempts of a schedule, also from before a requeue, oldest first, and the actions of operators."""

    schedule: Schedule
    tries: list[Try]
    actions: list[Deed]


class Ahead(msgspec.Struct, frozen=True, rename="camel"):
    """A run to come: when it begins at the earliest and at the latest, and what follows if it fails."""

    run: int
    earliest: datetime
    latest: datetime
    if_it_fails: str


async def add_schedules(new: Sequence[tuple[str, NewSchedule]], by: str) -> list[Schedule]:
    """Make schedules, all or none; a flag that is not there is a 404."""
    calls = [call_for(key, schedule, by) for key, schedule in new]
    async with database.transaction() as session:
        for key in {key for key, _ in new}:
            if await find_flag(session, key) is None:
                raise Problem(HTTPStatus.NOT_FOUND, f"there is no flag {key!r}", field="flagKey")
        handles = await app.enqueue_many([call for _, call in calls], connection=session.connection)
    return [schedule_of(await handle.view()) for handle in handles]


async def find_schedule(schedule_id: str, flag_key: str | None = None) -> Found:
    """A schedule by its id, of this flag if one is named; anything else is a 404."""
    desk = await app.desk(ACTOR)
    with suppress(NotFoundError, ArgumentError):
        job = await desk.job_by_ref(schedule_id)
        if job.kind == APPLY and (flag_key is None or tag_of(flag_key) in job.tags):
            return (await _with_caches(desk, [job]))[0]
    of_flag = "" if flag_key is None else f" of flag {flag_key!r}"
    raise Problem(HTTPStatus.NOT_FOUND, f"there is no schedule {schedule_id!r}{of_flag}", field="scheduleId")


async def list_schedules(flag_key: str | None = None, page: Page | None = None) -> list[Schedule]:
    """Schedules of a flag or of all, newest first."""
    desk = await app.desk(ACTOR)
    which = JobFilter(kind=APPLY) if flag_key is None else JobFilter(kind=APPLY, tag=tag_of(flag_key))
    found = await desk.jobs(which, page or Page(50))
    return [one.schedule for one in await _with_caches(desk, found.jobs)]


async def failing_schedules(limit: int) -> list[Schedule]:
    """Schedules that have failed and are not mended, newest first, however many others were made since."""
    desk = await app.desk(ACTOR)
    states = ("dead", "retrying")
    jobs = (await desk.jobs(JobFilter(kind=APPLY, states=states), Page(limit))).jobs
    caches = (await desk.jobs(JobFilter(kind=INVALIDATE, states=states), Page(limit))).jobs
    metas = [cache.to_dict()["meta"] or {} for cache in caches]
    applied = [await desk.job_by_ref(meta["scheduleId"]) for meta in metas if "scheduleId" in meta]  # or by hand
    return [one.schedule for one in await _with_caches(desk, [*jobs, *applied])]


async def cancel_schedule(found: Found, by: str) -> Schedule:
    """Cancel a pending schedule. A running one is asked to stop first; one that cannot be cancelled is a 400."""
    job, schedule = found.job, found.schedule
    if schedule.status == CANCELLED:
        return schedule
    _refuse_unless_pending(schedule)
    await (await app.desk(by)).cancel(job.id, why=f"cancelled by {by}")
    with suppress(JobNotSuccessful, TimeoutError):
        await app.handle(job.id).result(_STOPPING)
    after = (await find_schedule(schedule.id)).schedule
    if after.status != CANCELLED:
        _refuse_unless_pending(after)
    return after


async def retry_schedule(found: Found, by: str) -> Schedule:
    """Try a failed schedule again now, with all its retries; one that is not failed is a 400."""
    schedule = found.schedule
    if schedule.status != FAILED:
        detail = f"schedule {schedule.id} is {schedule.status}: only a failed one can be retried"
        raise Problem(HTTPStatus.BAD_REQUEST, detail, field="scheduleId")
    failing = found.cache if found.cache is not None and status_of(found.job) == APPLIED else found.job
    desk = await app.desk(by)
    if failing.state == "dead":
        await desk.requeue(failing.id)
    elif failing.state in {"retrying", "paused", "waiting"}:
        await desk.run_now(failing.id)
    return (await find_schedule(schedule.id)).schedule


async def history_of(found: Found) -> History:
    """The past of a schedule."""
    desk = await app.desk(ACTOR)
    parts = [("flag", found.job), *([("cache", found.cache)] if found.cache is not None else [])]
    tries, deeds = list[Try](), list[Deed]()
    for part, job in parts:
        for one in (await desk.job(job.id, lines=0)).attempts:
            error = f"{one.error_type}: {one.message}"
            times = one.started_at, one.finished_at
            tries.append(Try(part, one.number, *times, error, one.reason, one.next_at, one.worker))
        for entry in (await desk.audit(job=job.id, limit=100)).entries:
            if entry.actor_type == "person":
                deeds.append(Deed(entry.at, entry.actor, entry.action))
    tries.sort(key=lambda one: one.started_at)
    return History(found.schedule, tries, sorted(deeds, key=lambda one: one.at))


def timeline(
    policy: RetryPolicy, since: datetime, *, failures: int = 0, next_at: datetime | None = None
) -> list[Ahead]:
    """The runs to come if each of them fails, of a schedule that was first due then."""
    elapsed = None if next_at is None else next_at - since
    return [
        Ahead(
            planned.attempt,
            since + planned.earliest,
            since + planned.latest,
            "retried" if planned.then is None else "failed: an operator is needed",
        )
        for planned in policy.retry().preview(failures=failures, elapsed=elapsed)
    ]


async def timeline_of(found: Found) -> list[Ahead]:
    """The runs to come of a schedule; none if it is over."""
    schedule = found.schedule
    if schedule.status not in {FAILED, "pending"} or schedule.needs_operator:
        return []
    at = schedule.next_retry_at or (schedule.scheduled_at if not schedule.retry_count else None)
    now = await (await app.desk(ACTOR)).now()
    return timeline(schedule.retry_policy, schedule.scheduled_at, failures=schedule.retry_count, next_at=at or now)


def _refuse_unless_pending(schedule: Schedule) -> None:
    if schedule.status in {APPLIED, FAILED}:
        detail = f"schedule {schedule.id} is {schedule.status}: only a pending one can be cancelled"
        if schedule.next_retry_at is not None:
            detail += f"; to end its retries, an operator uses: perdure jobs cancel {schedule.id}"
        raise Problem(HTTPStatus.BAD_REQUEST, detail, field="scheduleId")


async def _with_caches(desk: Desk, jobs: Sequence[JobView]) -> list[Found]:
    """Each schedule's job with the invalidation that follows it, all of them in one query."""
    applied = [str(invalidation_of(job.id)) for job in jobs if job.state == "succeeded"]
    caches: dict[str, JobView] = {}
    if applied:
        which = JobFilter(kind=INVALIDATE, ids=tuple(applied))
        caches = {str(job.id): job for job in (await desk.jobs(which, Page(len(applied)))).jobs}
    return [Found(job, caches.get(str(invalidation_of(job.id)))) for job in jobs]
