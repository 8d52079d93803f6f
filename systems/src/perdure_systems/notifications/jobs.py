"""The whole of the retry machinery: one job. What certctl wrote by hand is the declaration above `notify`.

    await notify.enqueue(channel="slack", subject="Certificate expires", body="api.example.com has 7 days left")

A notification is a job, and its record is the job's: `retry_count`, `next_retry_at` and `last_error` are what the
engine counts anyway. An attempt that fails waits 1, 2, 4 and 8 minutes; the fifth failure makes it dead; an operator's
requeue gives it a new life. A claim is exclusive: two servers never send the same attempt twice.
"""

from __future__ import annotations

import ssl
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack
from functools import cache
from typing import Final

import httpx
import msgspec
import structlog

from perdure import (
    App,
    Backoff,
    ConflictError,
    Context,
    Desk,
    Finish,
    Jitter,
    Keep,
    NotFoundError,
    Retry,
    StoreUnavailable,
    WorkerSettings,
)
from perdure_systems.notifications.channels.message import Message, Severity
from perdure_systems.notifications.settings import notifier_for, retry_interval

KIND: Final = "notifications.notify"
QUEUE: Final = "notifications"
STATUS_OF: Final = {
    "scheduled": "pending",
    "ready": "pending",
    "running": "pending",
    "waiting": "pending",
    "paused": "pending",
    "retrying": "failed",
    "succeeded": "sent",
    "dead": "dead",
    "cancelled": "cancelled",
}
RETRY: Final = Retry(attempts=5, backoff=Backoff.exponential("1m", cap="1h"), jitter=Jitter.none())
SWEPT_JOBS_LIMIT: Final = 1_000
LATE: Final = "10s"
_JOBS_PER_BATCH: Final = 100
_HTTP_TIMEOUT_SECONDS: Final = 10.0
# A pool of httpx looks at all its connections for each request: several small ones are cheaper.
_CONNECTION_POOLS: Final = 10

log = structlog.get_logger("perdure_systems.notifications")
app = App(queues=[QUEUE], worker=WorkerSettings(concurrency=50))
_clients: deque[httpx.AsyncClient] = deque()
_trusted_roots = cache(ssl.create_default_context)  # reading them takes longer than a request


@app.lifespan
async def open_clients() -> AsyncIterator[None]:
    """Share HTTP connections among all notifications of a worker."""
    tls = _trusted_roots()
    async with AsyncExitStack() as stack:
        for _ in range(_CONNECTION_POOLS):
            client = httpx.AsyncClient(timeout=_HTTP_TIMEOUT_SECONDS, verify=tls)
            _clients.append(await stack.enter_async_context(client))
        try:
            yield
        finally:
            _clients.clear()


@app.job(
    name=KIND,
    queue=QUEUE,
    retry=RETRY,
    timeout="30s",
    keep=Keep(succeeded="90d", cancelled="90d", dead=None),
    state_words=STATUS_OF,
)
async def notify(
    ctx: Context,
    channel: str,
    subject: str,
    body: str,
    recipient: str | None = None,
    severity: Severity | None = None,
) -> str:
    """Send a notification; what the receiver answered.

    `channel` is one of `Channel`. One that is not set up (any more) closes the notification as sent, with a note, so
    that it does not stand in the way for ever. `recipient` is an address for e-mail.
    """
    notifier = notifier_for(channel)
    if notifier is None:
        raise Finish(f"not sent: there is no notifier for the channel {channel!r}")
    message = Message(
        id=ctx.job_id, subject=subject, body=body, created_at=ctx.since, recipient=recipient, severity=severity
    )
    _clients.rotate()
    return await notifier.send(message, _clients[0])


class Swept(msgspec.Struct, frozen=True):
    """What a sweep found: retries that were late, and how many of them it has made ready."""

    late: int = 0
    released: int = 0


@app.every(retry_interval(), limit="2m", per="fleet", name="notifications.retry")
async def sweep_retries() -> Swept:
    """Make retries ready that should have been sent and were not: at most 1000, oldest due first.

    Workers make a retry ready in the second in which it is due. So this finds something only after trouble: the sweep
    is the second look that `CERTCTL_NOTIFICATION_RETRY_INTERVAL` asks for. It sends nothing itself: what it makes ready
    is claimed by one worker. A retry that cannot be made ready is reported, and the sweep goes on.
    """
    desk = await app.desk("app:notifications")
    late = [one for one in await desk.overdue(LATE, limit=SWEPT_JOBS_LIMIT) if one.queue == QUEUE]
    released = 0
    for several in _in_batches([one.job_id for one in late], _JOBS_PER_BATCH):
        released += await _release(desk, several)
    if late:
        log.warning("retries were late", late=len(late), released=released, oldest_due=late[0].due_at.isoformat())
    return Swept(len(late), released)


async def _release(desk: Desk, ids: Sequence[str]) -> int:
    """Make retries ready; if that fails, each by itself, so that one bad row does not hold up the others."""
    try:
        return len((await desk.run_now(ids)).ids)
    except (ConflictError, NotFoundError):
        return 0  # a worker was faster
    except StoreUnavailable:
        raise  # no row is to blame, and the next sweep looks again
    except Exception:
        if len(ids) > 1:
            return sum([await _release(desk, [one]) for one in ids])
        log.exception("a late retry could not be made ready", notification=ids[0])
        return 0


def _in_batches(ids: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """The ids in their order, so many at a time."""
    return (ids[start : start + size] for start in range(0, len(ids), size))
