"""Send one webhook, and judge the answer: 2xx is delivered, 5xx and the network are retried, the rest is final."""

from __future__ import annotations

import asyncio
import time

import httpx
from msgspec.structs import replace

from perdure import Context, Permanent
from perdure_systems.audits import settings
from perdure_systems.audits.addresses import AddressRefused, GuardedTransport, tls
from perdure_systems.audits.pipeline.screenshots import brief
from perdure_systems.audits.records import Delivery, Records
from perdure_systems.audits.signing import webhook_headers


class WebhookFailed(ConnectionError):  # noqa: N818 - says what happened
    """The receiver was not reached or had an error of its own: it is tried again."""


class WebhookRefused(Permanent):
    """The receiver does not want this webhook: it is not tried again."""


async def send_webhook(ctx: Context, records: Records, audit_id: str, url: str, body: bytes) -> int:
    """Send it once, and record it once; the status of the answer. Anything but 2xx is raised."""
    headers = webhook_headers(
        settings.webhook_secret(),
        body,
        webhook_id=ctx.job_id,
        attempt=ctx.attempt,
        max_attempts=settings.WEBHOOK_RETRY.attempts or 0,
        sent_at=ctx.claimed_at,
    )
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
    status, failure = await _post(url, headers, body)
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


async def _post(url: str, headers: dict[str, str], body: bytes) -> tuple[int, Exception | None]:
    """The status of the answer (0: there was none), and what is wrong with it. Redirects are not followed.

    A receiver of the own network may be called if the settings name it: no stranger chose it.
    """
    seconds = settings.LIMITS["webhook"].total_seconds()
    transport = httpx.AsyncHTTPTransport if url == settings.webhook_url() else GuardedTransport
    try:
        async with (
            asyncio.timeout(seconds),
            httpx.AsyncClient(transport=transport(verify=tls()), timeout=seconds) as client,
            client.stream("POST", url, content=body, headers=headers) as response,
        ):
            status = response.status_code
    except (AddressRefused, httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        return 0, WebhookRefused(f"{url} cannot be called: {error}")
    except (TimeoutError, httpx.TimeoutException):
        return 0, WebhookFailed(f"{url} did not answer within {seconds:g} s")
    except (OSError, httpx.HTTPError) as error:
        return 0, WebhookFailed(f"{url} was not reached: {brief(error)}")
    if response.is_success:
        return status, None
    failed = WebhookFailed if response.is_server_error else WebhookRefused
    return status, failed(f"{url} answered {status}")
