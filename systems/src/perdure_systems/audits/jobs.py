"""The audits: one job that measures, photographs, prints and hands over, and one that delivers its webhook.

A finished step is stored before the next one begins, so an attempt that fails later never measures again. The webhook
is a separate job with its own retries, enqueued by the last step: there is one for each completed audit, and none for
others.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any, Final
from uuid import UUID, uuid5

import structlog

from perdure import App, Context, Desk, JobFilter, JobState, Keep, Page, Queue, Release, Verdict, WorkerSettings
from perdure_systems.audits import settings, storage
from perdure_systems.audits.addresses import check_address
from perdure_systems.audits.delivery.payload import webhook_body
from perdure_systems.audits.delivery.webhooks import send_webhook
from perdure_systems.audits.failures import context_of
from perdure_systems.audits.pipeline.instruments import instruments
from perdure_systems.audits.pipeline.report import print_report
from perdure_systems.audits.pipeline.screenshots import take_screenshots
from perdure_systems.audits.records import MIGRATIONS, Records
from perdure_systems.audits.results import HandedOver, PageSpeed, Strategy
from perdure_systems.audits.settings import LIMITS
from perdure_systems.kit.database import Database
from perdure_systems.notifications.jobs import notify

AUDIT: Final = "audits.audit"
DELIVER: Final = "audits.deliver"
CLEAN_UP: Final = "audits.clean_up"
QUEUES: Final = ("audits", "audits-webhooks")
WORDS: Final = {
    "scheduled": "pending",
    "ready": "pending",
    "running": "processing",
    "retrying": "processing",
    "waiting": "processing",
    "paused": "processing",
    "succeeded": "completed",
    "dead": "failed",
}
DELIVERY_WORDS: Final = {**WORDS, "running": "sending", "retrying": "retrying", "succeeded": "delivered"}
_UNTIL_CLEANED_UP: Final = Keep(succeeded=None, cancelled=None, dead=None)  # `clean_up` removes the files as well
_JOBS_PER_BATCH: Final = 200

app = App(worker=WorkerSettings(queues=(Queue(QUEUES[0], concurrency=settings.concurrency()), Queue(QUEUES[1]))))
database = Database(app, "audits", MIGRATIONS)
records = Records(database)
log = structlog.get_logger("perdure_systems.audits")


@app.job(name=AUDIT, queue=QUEUES[0], retry=settings.audit_retry, state_words=WORDS, keep=_UNTIL_CLEANED_UP)
async def audit(ctx: Context, url: str, strategy: Strategy = "mobile", webhook_url: str | None = None) -> PageSpeed:
    """Audit one page."""
    speed = await ctx.step(
        "pagespeed", measure, ctx, url, strategy, timeout=LIMITS["pagespeed"], gates=settings.quota()
    )

    required = settings.require_screenshots()
    shots = await ctx.step(
        "screenshots",
        take_screenshots,
        ctx.job_id,
        url,
        required,
        timeout=LIMITS["screenshots"],
        optional=not required,
    )
    error = ctx.step_error("screenshots")
    for size, why in (shots.errors if shots else {}).items():
        ctx.warn(f"no {size} screenshot: {why}")

    report = await ctx.step(
        "pdf", print_report, ctx.job_id, url, strategy, speed, shots, error, ctx.claimed_at, timeout=LIMITS["pdf"]
    )

    body = webhook_body(ctx.job_id, url, strategy, speed, report)
    await ctx.step("webhook", hand_over, ctx.job_id, webhook_url, body)
    return speed


async def measure(ctx: Context, url: str, strategy: Strategy) -> PageSpeed:
    """Measure the page; a request to the API counts against its quota whether it succeeds or not."""
    await check_address(url)
    if settings.pagespeed_url():
        await ctx.spend(1, settings.QUOTA)
    return await instruments().measure(url, strategy)


async def hand_over(audit_id: str, url: str | None, body: str) -> HandedOver:
    """Make the job that delivers the webhook. Its id is derived from the audit's id, so there is only one."""
    target = url or settings.webhook_url()
    if not target:
        return HandedOver(None, None)
    delivery = deliver.using(id=uuid5(UUID(audit_id), "webhook"), tags=[f"audit:{audit_id}"])
    return HandedOver((await delivery.enqueue(audit_id, target, body)).id, target)


@app.job(
    name=DELIVER, queue=QUEUES[1], retry=settings.WEBHOOK_RETRY, state_words=DELIVERY_WORDS, keep=_UNTIL_CLEANED_UP
)
async def deliver(ctx: Context, audit_id: str, url: str, body: str) -> int:
    """Send the result of an audit to its receiver."""
    return await send_webhook(ctx, records, audit_id, url, body.encode())


@app.every("1m", per="fleet", name="audits.report_failures")
async def report_failures() -> int:
    """Log each audit and webhook that has failed for good, once and in full; send an alert for webhooks."""
    desk = await app.desk("app:audits")
    reported = 0
    for kind in (AUDIT, DELIVER):
        for job in (await desk.dead_letters(JobFilter(kind=kind, marked=False), Page(limit=_JOBS_PER_BATCH))).jobs:
            detail = await desk.job(job.id, lines=20)
            log.error("audit failed" if kind == AUDIT else "webhook failed", **context_of(detail.to_dict()))
            if kind == DELIVER:
                await _alert(job.arguments, job.id, job.last_error or job.reason)
            await desk.mark(job.id, "reported")
            reported += 1
    return reported


async def _alert(arguments: dict[str, Any], webhook_id: str, error: str) -> None:
    """At most one an hour for each audit."""
    audit_id = arguments["audit_id"]
    if await app.once_per("1h", key=f"audits.alert:{audit_id}"):
        await notify.enqueue(
            channel=settings.alert_channel(),
            subject=f"Webhook of audit {audit_id} failed",
            body=f"The webhook {webhook_id} to {arguments['url']} was given up: {error}",
        )


@app.cron("30 3 * * *", missed="once", name=CLEAN_UP, queue=QUEUES[0])
async def clean_up(ctx: Context) -> dict[str, int]:
    """Delete failed audits, completed audits and deliveries that are older than their retention."""
    desk, now = await app.desk("app:audits"), ctx.claimed_at
    ended = (JobState.SUCCEEDED, JobState.CANCELLED)
    deliveries_before = now - settings.delivery_retention()
    removed = {
        "failed": await _purge(desk, AUDIT, (JobState.DEAD,), now - settings.failed_retention()),
        "completed": await _purge(desk, AUDIT, ended, now - settings.completed_retention()),
        "webhooks": await _purge(desk, DELIVER, (*ended, JobState.DEAD), deliveries_before),
        "deliveries": await records.prune(deliveries_before),
    }
    log.info("audits cleaned up", **removed)
    return removed


async def _purge(desk: Desk, kind: str, states: tuple[JobState, ...], before: datetime) -> int:
    """Delete jobs that ended before this time. Files go first: a job that is left leads to files that are left."""
    removed = 0
    old = JobFilter(kind=kind, states=states, finished_before=before)
    while page := (await desk.jobs(old, Page(limit=_JOBS_PER_BATCH))).jobs:
        if kind == AUDIT:
            for job in page:
                storage.remove(job.id)
        removed += len((await desk.purge([job.id for job in page])).ids)
    return removed


@app.middleware
async def leave_work_to_the_next(ctx: Context) -> AsyncIterator[None]:
    """A failure while the worker closes costs no attempt: the browser may be gone, and the next worker retries."""
    try:
        yield
    except Verdict:
        raise
    except Exception as error:
        if ctx.closing and ctx.kind == AUDIT:
            raise Release(message=f"the worker is closing: {error}") from error
        raise


@app.lifespan
async def close_browser() -> AsyncIterator[None]:
    """End the browser with the worker."""
    yield
    await instruments().close()
