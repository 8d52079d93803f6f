"""Schedules of flags are jobs. What the original wrote by hand is the declaration above `apply`.

The job is the record: `scheduleId` is its ref, `status` its state in our words, `retry_count`, `next_retry_at` and
`last_error` are what the engine counts anyway. A due schedule is claimed at once, not by the minute; retries go first
(`Retry(priority=…)`), then by priority, the earliest first; two processors never hold one schedule.

The change of the flag, the state `applied` and the job that invalidates the cache commit together or not at all. The
cache is told afterwards: its failures count against the same limit, and never change the flag again.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final
from uuid import NAMESPACE_OID, UUID, uuid5

from perdure import App, Breaker, Context, Desk, JobFilter, JobView, Keep, Page, WorkerSettings, alerts
from perdure_systems.flags.cache import FlagCache
from perdure_systems.flags.policy import BOUNDS, RETRY_PRIORITY, STANDARD, RetryPolicy
from perdure_systems.flags.records import Updates
from perdure_systems.flags.settings import ALERT_ADDRESS, max_retries, read_settings
from perdure_systems.flags.store import MIGRATIONS, change_flag
from perdure_systems.flags.telling import tell_of_schedules
from perdure_systems.kit.database import Database, Session

APPLY: Final = "flags.apply"
INVALIDATE: Final = "flags.invalidate"
QUEUE: Final = "flags"
STATUS_OF: Final = {
    "scheduled": "pending",
    "ready": "pending",
    "running": "pending",
    "waiting": "pending",
    "paused": "pending",
    "retrying": "failed",
    "succeeded": "applied",
    "dead": "failed",
    "cancelled": "cancelled",
}
WORKER: Final = WorkerSettings(claim_batch=100, ageing=0)
"""100 a run, and an order that waiting does not change: retries first."""
KEPT: Final = {"succeeded": timedelta(days=90), "cancelled": timedelta(days=30)}
"""What `clean_up` deletes, and when. Failed schedules stay."""
FOR_CLEAN_UP: Final = Keep(succeeded=None, cancelled=None, dead=None)
ACTOR: Final = "app:flags"

app = App()
database = Database(app, "flags", MIGRATIONS)
tell_of_schedules(app)
alerts.channel(app, "operators", f"env:{ALERT_ADDRESS}")
for given_up in (APPLY, INVALIDATE):
    alerts.rule(app, given_up, "job_died", kind=given_up, to="operators", severity="critical")


@app.lifespan
def check_settings() -> Iterator[None]:
    """Refuse to start with settings that cannot be used."""
    read_settings()
    yield


@app.job(
    name=APPLY,
    queue=QUEUE,
    retry=lambda: RetryPolicy(max_retries()).retry(),
    bounds=BOUNDS,
    breaker=Breaker("flags.database", failures=5, window="1m", open_for="1m"),
    timeout="30s",
    keep=FOR_CLEAN_UP,
    state_words=STATUS_OF,
)
async def apply(
    ctx: Context,
    flag_key: str,
    updates: Updates,
    scheduled_at: datetime,  # noqa: ARG001 - part of the record
    created_by: str,
    policy: RetryPolicy = STANDARD,
) -> int:
    """Change the flag; the version that it has then. A flag that was deleted is a permanent failure."""
    async with ctx.transaction() as connection:
        flag = await change_flag(
            Session(connection), flag_key, updates, at=ctx.claimed_at, by=created_by, schedule_id=ctx.ref
        )
        if read_settings().cache_url:
            about = {"scheduleId": ctx.ref, "flagKey": flag_key, "maxRetries": policy.max_retries}
            await invalidate.using(
                id=invalidation_of(ctx.job_id),
                connection=connection,
                retry=policy.retry(failures_before=ctx.failures),
                tags=ctx.tags,
                meta={**about, "failuresBefore": ctx.failures},
            ).enqueue(flag_key, flag.version)
    return flag.version


@app.job(
    name=INVALIDATE,
    queue=QUEUE,
    priority=RETRY_PRIORITY,
    retry=STANDARD.retry(),
    breaker=Breaker("flags.cache", failures=5, window="1m", open_for="1m"),
    timeout="30s",
    keep=FOR_CLEAN_UP,
    state_words=STATUS_OF,
)
async def invalidate(flag_key: str, version: int) -> None:
    """Drop the old copies of a flag that was changed. Doing it twice does no harm."""
    if url := read_settings().cache_url:
        await FlagCache(url).invalidate(flag_key, version)


def invalidation_of(job_id: str) -> UUID:
    """The id of the job that invalidates the cache after a schedule's job."""
    return uuid5(NAMESPACE_OID, f"flags.invalidate:{job_id}")


@app.cron("0 2 * * *", tz="UTC", missed="once", name="flags.clean_up", queue=QUEUE, keep="30d")
async def clean_up(ctx: Context) -> int:
    """Delete what is applied for 90 days or cancelled for 30; how many. What is still retrying is spared."""
    desk = await app.desk(ACTOR)
    deleted = 0
    for state, age in KEPT.items():
        old = JobFilter(kind=APPLY, states=state, finished_before=ctx.claimed_at - age)
        page = await desk.jobs(old, Page(500))
        while page.jobs:
            deleted += await _delete_with_invalidations(desk, page.jobs)
            if page.next is None:
                break
            page = await desk.jobs(old, Page(500, before=page.next))
    return deleted


async def _delete_with_invalidations(desk: Desk, jobs: tuple[JobView, ...]) -> int:
    """Delete schedules, but for those whose cache is not invalidated yet."""
    known = {str(invalidation_of(job.id)): job.id for job in jobs}
    found = (await desk.jobs(JobFilter(kind=INVALIDATE, ids=tuple(known)), Page(500))).jobs
    spared = {known[str(job.id)] for job in found if job.state not in {"succeeded", "cancelled"}}
    gone = [job.id for job in jobs if job.id not in spared]
    gone += [job.id for job in found if known[str(job.id)] not in spared]
    if gone:
        await desk.purge(gone)
    return len(jobs) - len(spared)
