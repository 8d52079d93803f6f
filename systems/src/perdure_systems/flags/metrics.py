"""Figures about schedules: how they ended, how retries fared, and what waits.

The desk and Prometheus count attempts and jobs. With a cache a schedule is two jobs, and is `applied` or `failed` by
both. So these figures come from the jobs: those that ended within the last day, at most 2,000 of each state, and all
that have not ended.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

from perdure import Desk, JobFilter, JobView, Page
from perdure_systems.flags.jobs import ACTOR, APPLY, INVALIDATE, app

WINDOW: Final = timedelta(days=1)
_PAGES_READ_LIMIT: Final = 4
_ACTIVE: Final = ("scheduled", "ready", "running", "retrying", "waiting", "paused")


class Backlog(msgspec.Struct, frozen=True, rename="camel"):
    """What has not ended: due by now, waiting for a retry, for its time, or for a breaker."""

    due: int
    retrying: int
    scheduled: int
    held: int
    oldest_due_seconds: float

    @property
    def waiting(self) -> int:
        """All of them."""
        return self.due + self.retrying + self.scheduled + self.held


class RetryMetrics(msgspec.Struct, frozen=True, rename="camel"):
    """Figures of the last 24 hours, and the backlog now. A rate is None while there is nothing to tell it from."""

    at: datetime
    applied: int
    applied_on_retry: int
    failed: int
    cancelled: int
    success_rate: float | None
    failure_rate: float | None
    retry_success_rate: float | None
    failed_tries: int
    backlog: Backlog
    cache_backlog: int
    given_up: int
    is_capped: bool


async def measure_retries() -> RetryMetrics:
    """The figures as of now."""
    desk = await app.desk(ACTOR)
    now = await desk.now()
    since = now - WINDOW
    stale = await _failing_caches(desk)
    changed, more = await _ended(desk, "succeeded", since)
    applied = [job for job in changed if job.ref not in stale]
    failed, more_failed = await _ended(desk, "dead", since)
    failed += [cache for cache in stale.values() if cache.finished_at is not None and cache.finished_at > since]
    cancelled = (await desk.count(JobFilter(kind=APPLY, states="cancelled", finished_after=since))).jobs
    retried = [job for job in applied if job.failures]
    given_up = [job for job in failed if job.failures > 1]
    counts, cache = await _count_by_state(desk, APPLY), await _count_by_state(desk, INVALIDATE)
    return RetryMetrics(
        at=now,
        applied=len(applied),
        applied_on_retry=len(retried),
        failed=len(failed),
        cancelled=cancelled,
        success_rate=_share(len(applied), len(applied) + len(failed)),
        failure_rate=_share(len(failed), len(applied) + len(failed)),
        retry_success_rate=_share(len(retried), len(retried) + len(given_up)),
        failed_tries=sum(job.failures for job in (*applied, *failed)),
        backlog=Backlog(
            due=counts.get("ready", 0) + counts.get("running", 0),
            retrying=counts.get("retrying", 0) + sum(cache.state == "retrying" for cache in stale.values()),
            scheduled=counts.get("scheduled", 0),
            held=counts.get("paused", 0) + counts.get("waiting", 0),
            oldest_due_seconds=await _oldest_due(desk, now),
        ),
        cache_backlog=sum(jobs for state, jobs in cache.items() if state in _ACTIVE),
        given_up=counts.get("dead", 0) + cache.get("dead", 0),
        is_capped=more or more_failed,
    )


async def _count_by_state(desk: Desk, kind: str) -> dict[str, int]:
    tallies = await desk.count_by("state", which=JobFilter(kind=kind))
    return {str(one.state): one.jobs for one in tallies}


async def _ended(desk: Desk, state: str, since: datetime) -> tuple[list[JobView], bool]:
    found: list[JobView] = []
    which, page = JobFilter(kind=APPLY, states=state, finished_after=since), Page(500)
    for _ in range(_PAGES_READ_LIMIT):
        answer = await desk.jobs(which, page)
        found += answer.jobs
        if answer.next is None:
            return found, False
        page = Page(500, before=answer.next)
    return found, True


async def _failing_caches(desk: Desk) -> dict[str, JobView]:
    """By schedule: the invalidations that fail. Such a schedule is not applied, although its flag is changed."""
    which = JobFilter(kind=INVALIDATE, states=("retrying", "dead"))
    jobs = (await desk.jobs(which, Page(500))).jobs
    metas = ((job.to_dict()["meta"] or {}, job) for job in jobs)
    return {meta["scheduleId"]: job for meta, job in metas if "scheduleId" in meta}  # others were changed by hand


async def _oldest_due(desk: Desk, now: datetime) -> float:
    waiting = (await desk.jobs(JobFilter(kind=APPLY, states=("ready", "running")), Page(500))).jobs
    return max(((now - job.since).total_seconds() for job in waiting), default=0.0)


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None
