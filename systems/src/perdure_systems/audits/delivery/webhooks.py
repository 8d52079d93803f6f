"""Send one webhook, and judge the answer: 2xx is delivered, 5xx and the network are retried, the rest is final."""

from __future__ import annotations

import time
from http import HTTPStatus

from msgspec.structs import replace

from perdure import Context
from perdure.webhooks import Sender, SendFailed, SendRefused, delivery_headers
from perdure_systems.audits import settings
from perdure_systems.audits.records import Delivery, Records


async def send_webhook(ctx: Context, records: Records, audit_id: str, url: str, body: bytes) -> int:
    """Send it once, and record it once; the status of the answer. Anything but 2xx is raised."""
    sending = Delivery(
        webhook_id=ctx.job_id,
        token=ctx.token,
        audit_id=audit_id,
        url=url,
        attempt=ctx.attempt,
        status="sending",
        sent_at=ctx.claimed_at,
    )
    await records.begin_delivery(sending)
    begun = time.perf_counter()
    status, failure = await _post(ctx, url, body)
    await records.end_delivery(
        replace(
            sending,
            status="delivered" if failure is None else "failed",
            status_code=status,
            seconds=round(time.perf_counter() - begun, 3),
            error=None if failure is None else str(failure),
        )
    )
    if failure is not None:
        raise failure
    return status


async def _post(ctx: Context, url: str, body: bytes) -> tuple[int, Exception | None]:
    """The status of the answer (0: there was none), and what is wrong with it.

    A receiver of the own network may be called if the settings name it: no stranger chose it.
    """
    sender = Sender(allow_private=url == settings.webhook_url() or settings.allow_private_addresses())
    try:
        answer = await sender.send(
            url,
            body,
            secret=settings.webhook_secret(),
            headers=delivery_headers(ctx.job_id, ctx.attempt, settings.WEBHOOK_RETRY.attempts),
            sent_at=ctx.claimed_at,
            timeout=settings.LIMITS["webhook"],
        )
    except (SendFailed, SendRefused) as error:
        return 0 if error.answer is None else error.answer.status, _judged(error)
    return answer.status, None


def _judged(error: SendFailed | SendRefused) -> Exception:
    """Every 4xx is final, also 408 and 429; the waits are those of the table, whatever a receiver asks for."""
    status = 0 if error.answer is None else error.answer.status
    if isinstance(error, SendRefused) or HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return SendRefused(str(error), error.answer)
    return SendFailed(str(error), error.answer)
