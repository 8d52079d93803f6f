"""Create an audit or find the existing one for the page.

The database holds the promise: one unique key for a page and strategy while its audit is pending or processing, and for
a while after it failed. So the request that loses a race is simply given the audit of the winner.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
import structlog

from perdure import ConflictError, JobFilter, JobView, NotFoundError, Page, StoreLocked, Unique
from perdure_systems.audits import settings
from perdure_systems.audits.jobs import AUDIT, WORDS, app, audit, records
from perdure_systems.audits.results import Strategy

WAITS_SECONDS: Final = (0.010, 0.020, 0.040)
log = structlog.get_logger("perdure_systems.audits")


class Taken(msgspec.Struct, frozen=True):
    """The audit that stands for a request; `is_new`: the request has created it."""

    id: str
    status: str
    webhook_url: str | None
    is_new: bool


async def create_or_find(
    url: str,
    strategy: Strategy,
    webhook_url: str | None = None,
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Taken:
    """The audit of this page, new or existing. Races end in one audit and no error, and are counted."""
    desk = await app.desk("app:audits")
    began = await desk.now()
    tag = page_tag(url, strategy)
    unique = Unique(by=("url", "strategy"), dead_for=settings.failed_retry_after())
    for wait in WAITS_SECONDS:
        try:
            handle = await audit.using(unique=unique, tags=[tag]).enqueue(url, strategy, webhook_url)
            if handle.is_new:
                return Taken(handle.id, WORDS["ready"], webhook_url, is_new=True)
            job = await handle.view()
        except (
            NotFoundError,
            StoreLocked,
        ) as met:  # the audit that was found is gone, or another writer was in the way
            log.info("audit request raced, trying again", url=url, strategy=strategy, met=str(met), wait=wait)
            await sleep(wait)
            continue
        if job.created_at > began:
            log.info("audit request raced", url=url, strategy=strategy, audit_id=job.id)
            await records.count_race(job.id, url, strategy, began)
        return _existing(job)
    found = (await desk.jobs(JobFilter(kind=AUDIT, tag=tag), Page(limit=1))).jobs
    if not found:
        raise ConflictError(f"the audit of {url} could neither be created nor found: send the request again")
    return _existing(found[0])


def _existing(job: JobView) -> Taken:
    return Taken(job.id, job.word or job.state, job.arguments.get("webhook_url"), is_new=False)


def page_tag(url: str, strategy: Strategy) -> str:
    """The tag of all audits of one page and strategy."""
    return f"page:{hashlib.sha256(f'{strategy} {url}'.encode()).hexdigest()[:32]}"
