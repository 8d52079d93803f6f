"""The twelve loops. Each ticks on one server of the fleet, never overlaps itself, has a limit, and drains at a stop.

perdure's `@app.every` has the guard, the limit and the drain. Each function here contains only its own work.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Final

import structlog

from perdure import JobFilter, Page
from perdure_systems.certificates.discovery import judge, list_cloud, look_at_all
from perdure_systems.certificates.jobs import ISSUE, SILENCE_LIMIT, app, database, desk, now
from perdure_systems.certificates.owners import tell_of_failure, tell_of_late_renewal
from perdure_systems.certificates.records import (
    ALL,
    DUE,
    REQUESTED,
    SHORT_LIVED_DUE,
    Certificate,
    Found,
    LoopRun,
    expire,
    mark_silent_agents,
    note_endpoint,
    note_found,
    note_run,
)
from perdure_systems.certificates.renewals import jobs_of, pages_of, request_all, request_renewals
from perdure_systems.certificates.settings import read_loops, read_settings
from perdure_systems.notifications.jobs import KIND as NOTIFICATION
from perdure_systems.notifications.jobs import notify

Tick = Callable[[], Awaitable[str]]
TOLD: Final = "told"  # the mark of an ended job that the reaper has handled
_LOOPS: Final = read_loops()

log = structlog.get_logger("perdure_systems.certificates")


def loop(name: str) -> Callable[[Tick], Tick]:
    """Declare a loop of this name, with its interval and limit, once for the whole fleet."""
    setting = _LOOPS[name]

    def declare(tick: Tick) -> Tick:
        @wraps(tick)
        async def noted() -> str:
            run = LoopRun(name, await now(), await tick())
            async with database.transaction() as session:
                await note_run(session, run)
            return run.did

        app.every(
            setting.interval,
            limit=setting.limit,
            at_start=setting.at_start,
            per="fleet",
            name=f"certificates.{name}",
        )(noted)
        return noted

    return declare


@loop("renewal")
async def renew() -> str:
    """Enqueue a job for every certificate that is due for renewal."""
    return f"{await request_renewals(DUE)} renewals requested"


@loop("processor")
async def process() -> str:
    """Enqueue a job for every requested certificate whose job was deleted: a request is never stranded."""
    picked_up = 0
    async for page in pages_of(REQUESTED):
        jobs = await jobs_of(page)
        picked_up += await request_all([one for one in page if one.job_id not in jobs], because="its job was deleted")
    return f"{picked_up} requests picked up"


@loop("job retry")
async def retry_failed_jobs() -> str:
    """Retry failed jobs that have attempts left at once. A job at its limit is dead, and is skipped."""
    changed = await (await desk()).run_now(JobFilter(kind=ISSUE, states="retrying"))
    return f"{len(changed.ids)} jobs retried"


@loop("reaper")
async def reap() -> str:
    """Mark requests whose job has ended without a certificate as failed, and tell the owner of a job that failed.

    What waits too long for a person ends by itself. A handled job gets a mark, which a requeue removes.
    """
    ended = 0
    unseen = JobFilter(kind=ISSUE, states=("dead", "cancelled"), marked=False)
    while jobs := (await (await desk()).jobs(unseen, Page(limit=500))).jobs:
        for job in jobs:
            await tell_of_failure(job)
        seen = JobFilter(ids=[str(job.id) for job in jobs], states=("dead", "cancelled"))  # not one requeued meanwhile
        await (await desk()).mark(seen, TOLD)
        ended += len(jobs)
    return f"{ended} jobs ended without a certificate"


@loop("agent health")
async def check_agents() -> str:
    """Mark agents as offline that were silent for 5 minutes."""
    at = await now()
    async with database.transaction() as session:
        silent = await mark_silent_agents(session, at, SILENCE_LIMIT)
    for agent in silent:
        log.warning("agent is offline", agent=agent)
    return f"{len(silent)} agents went offline"


@loop("notify")
async def warn_of_expiry() -> str:
    """Tell the owner of a certificate whose renewal does not come, once a day."""
    at = await now()
    notified = 0
    async for page in pages_of(DUE, now=at, short=0):
        for one in page:
            notified += await tell_of_late_renewal(one, at)
    return f"{notified} owners told"


@loop("notify retry")
async def count_due_notifications() -> str:
    """Count the failed notifications that wait for their retry. perdure retries each of them when it is due."""
    waiting = await (await desk()).count(JobFilter(kind=NOTIFICATION, states="retrying"))
    return f"{waiting.jobs} notifications wait for a retry"


@loop("short-lived")
async def expire_short_lived() -> str:
    """Renew certificates with a lifetime of a day or less, and mark expired ones."""
    requested = await request_renewals(SHORT_LIVED_DUE)
    at = await now()
    async with database.transaction() as session:
        expired = await expire(session, at)
    return f"{requested} short-lived renewals requested, {expired} certificates expired"


@loop("network scan")
async def scan_network() -> str:
    """Look at the configured TLS endpoints. One that does not answer does not end the scan."""
    seen = await look_at_all(read_settings().scan_endpoints)
    at = await now()
    async with database.transaction() as session:
        for found in seen.values():
            if isinstance(found, Found):
                await note_found(session, found, at)
    for address, failure in seen.items():
        if isinstance(failure, Exception):
            log.warning("endpoint does not answer", address=address, error=f"{type(failure).__name__}: {failure}")
    return f"{sum(isinstance(found, Found) for found in seen.values())} certificates found"


@loop("cloud discovery")
async def discover_in_cloud() -> str:
    """Read the cloud's list, where one is configured."""
    url = read_settings().cloud_url
    entries = await list_cloud(url) if url else []
    at = await now()
    async with database.transaction() as session:
        for entry in entries:
            await note_found(session, entry, at)
    return f"{len(entries)} certificates found"


@loop("digest")
async def send_digest() -> str:
    """One message a day with the status of all certificates."""
    certificates = await database.all(Certificate, ALL)
    states = {one.status: sum(1 for other in certificates if other.status == one.status) for one in certificates}
    text = ", ".join(f"{count} {status}" for status, count in sorted(states.items())) or "no certificates"
    once = notify.using(ref=f"certificate-digest:{(await now()).date()}")  # a server that takes over sends no second
    await once.enqueue(channel=read_settings().notify_channel, subject="Certificates today", body=text)
    return text


@loop("health")
async def check_endpoints() -> str:
    """Check that the endpoints answer with valid certificates."""
    seen = await look_at_all(read_settings().scan_endpoints)
    at = await now()
    answers = [judge(address, found, at) for address, found in seen.items()]
    async with database.transaction() as session:
        for answer in answers:
            await note_endpoint(session, answer)
    return f"{sum(answer.status == 'healthy' for answer in answers)} of {len(answers)} endpoints are healthy"
