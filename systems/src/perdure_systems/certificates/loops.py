"""The twelve loops. Each ticks on one server of the fleet, never overlaps itself, has a limit, and drains at a stop.

perdure's `@app.every` brings the guard, the limit and the drain. What is left of each loop is what it is for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from functools import wraps
from typing import Final

import structlog

from perdure import Desk, JobFilter, JobState, Page
from perdure_systems.certificates.discovery import check, list_cloud, look_at
from perdure_systems.certificates.jobs import ISSUE, SILENCE, app, database, request, tag
from perdure_systems.certificates.records import (
    ALL,
    EXPIRING,
    REQUESTED,
    Certificate,
    LoopRun,
    expire,
    mark_failed,
    mark_silent_agents,
    note_endpoint,
    note_found,
    note_run,
)
from perdure_systems.certificates.settings import read_loops, read_settings
from perdure_systems.notifications.jobs import KIND as NOTIFICATION
from perdure_systems.notifications.jobs import notify

Tick = Callable[[], Awaitable[str]]
ACTOR: Final = "app:certificates"
_NEARLY: Final = timedelta(hours=1)  # short-lived certificates are renewed when so much is left
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


async def desk() -> Desk:
    """The desk under the name of this system."""
    return await app.desk(ACTOR)


async def now() -> datetime:
    """The database's clock."""
    return await (await desk()).now()


@loop("renewal")
async def renew() -> str:
    """Enqueue a job for every certificate that expires soon."""
    before = await now() + timedelta(days=read_settings().renew_before_days)
    return f"{await _request_all(await database.all(Certificate, EXPIRING, {'before': before}))} renewals requested"


@loop("processor")
async def process() -> str:
    """Enqueue a job for every requested certificate that has none: a request is never stranded."""
    stranded = [one for one in await database.all(Certificate, REQUESTED) if await _last_state(one) is None]
    return f"{await _request_all(stranded)} requests picked up"


@loop("job retry")
async def retry_failed_jobs() -> str:
    """Bring failed jobs with attempts left back at once. One at its limit is dead, and is skipped."""
    changed = await (await desk()).run_now(JobFilter(kind=ISSUE, states="retrying"))
    return f"{len(changed.ids)} jobs retried"


@loop("reaper")
async def reap() -> str:
    """Mark the certificates whose job has ended without one; what waits too long for a person ends by itself."""
    failed = 0
    for one in await database.all(Certificate, REQUESTED):
        if await _last_state(one) in {JobState.DEAD, JobState.CANCELLED}:
            async with database.transaction() as session:
                await mark_failed(session, one.id)
            failed += 1
    return f"{failed} requests failed"


@loop("agent health")
async def check_agents() -> str:
    """Mark agents as offline that were silent for 5 minutes."""
    at = await now()
    async with database.transaction() as session:
        silent = await mark_silent_agents(session, at, SILENCE)
    for agent in silent:
        log.warning("agent is offline", agent=agent)
    return f"{len(silent)} agents went offline"


@loop("notify")
async def warn_of_expiry() -> str:
    """Tell the owner of a certificate that expires soon, once a day: the ref makes a second message impossible."""
    settings = read_settings()
    at = await now()
    told = 0
    for one in await database.all(Certificate, EXPIRING, {"before": at + timedelta(days=settings.renew_before_days)}):
        days = 0 if one.not_after is None else max(0, (one.not_after - at).days)
        message = await notify.using(ref=f"certificate-expiry:{one.id}:{at.date()}").enqueue(
            channel=settings.notify_channel,
            subject=f"{one.common_name} expires in {days} days",
            body=f"The certificate of {one.common_name} ({one.owner}) expires at {one.not_after}.",
        )
        told += message.is_new
    return f"{told} owners told"


@loop("notify retry")
async def count_due_notifications() -> str:
    """Count the failed notifications that wait for their retry. perdure retries each when it is due."""
    waiting = await (await desk()).count(JobFilter(kind=NOTIFICATION, states="retrying"))
    return f"{waiting.jobs} notifications wait for a retry"


@loop("short-lived")
async def expire_short_lived() -> str:
    """Renew certificates in their last hour, and mark what has expired."""
    at = await now()
    soon = await database.all(Certificate, EXPIRING, {"before": at + _NEARLY})
    requested = await _request_all(soon)
    async with database.transaction() as session:
        expired = await expire(session, at)
    return f"{requested} renewed in their last hour, {expired} expired"


@loop("network scan")
async def scan_network() -> str:
    """Look at the configured TLS endpoints. One that does not answer does not end the scan."""
    found = 0
    for address in read_settings().scan_endpoints:
        try:
            seen = await look_at(address)
        except (OSError, ValueError) as error:
            log.warning("endpoint does not answer", address=address, error=str(error))
            continue
        at = await now()
        async with database.transaction() as session:
            await note_found(session, seen, at)
        found += 1
    return f"{found} certificates found"


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
    """One message a day that says how all certificates stand."""
    certificates = await database.all(Certificate, ALL)
    states = {one.status: sum(1 for other in certificates if other.status == one.status) for one in certificates}
    text = ", ".join(f"{count} {status}" for status, count in sorted(states.items())) or "no certificates"
    once = notify.using(
        ref=f"certificate-digest:{(await now()).date()}"
    )  # a server that takes over sends no second one
    await once.enqueue(channel=read_settings().notify_channel, subject="Certificates today", body=text)
    return text


@loop("health")
async def check_endpoints() -> str:
    """Check that the endpoints answer with valid certificates."""
    at = await now()
    answers = await asyncio.gather(*(check(address, at) for address in read_settings().scan_endpoints))
    async with database.transaction() as session:
        for answer in answers:
            await note_endpoint(session, answer)
    return f"{sum(1 for answer in answers if answer.status == 'healthy')} of {len(answers)} endpoints are healthy"


async def _request_all(certificates: list[Certificate]) -> int:
    """Enqueue a job for each; one that has an active job already gets no second one."""
    for certificate in certificates:
        async with database.transaction() as session:
            await request(session, certificate.id)
    return len(certificates)


async def _last_state(certificate: Certificate) -> JobState | None:
    """Where the newest job of a certificate stands; None if it has none."""
    jobs = (await (await desk()).jobs(JobFilter(kind=ISSUE, tag=tag(certificate.id)), Page(limit=1))).jobs
    return JobState(jobs[0].state) if jobs else None
