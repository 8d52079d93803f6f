"""The job that carries a notice through one channel.

It is tried nine times in about half an hour. Each outcome is stored with the notice and with the channel, so that a
failing channel is known before its deliveries are given up. A crash after the sending and before its record sends a
notice twice: it carries the same id, and e-mails carry the same Message-ID.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from perdure.app.app import App
from perdure.domain.alerts.alert import DeliveryState, Notice
from perdure.domain.alerts.channel import Channel
from perdure.domain.alerts.rule import ALERT_KIND, ALERT_QUEUE
from perdure.errors import ArgumentError, PerdureError
from perdure.kinds.kind import Kind, Mode
from perdure.kinds.signature import Signature
from perdure.operate.alerts.addresses import INCIDENT_TOOLS, MAIL, WEB, scheme_of
from perdure.operate.alerts.mail_address import read_mail_address
from perdure.operate.alerts.memory import read_memory
from perdure.operate.alerts.sealing import unsealed
from perdure.policy.retries.backoff import Backoff
from perdure.policy.retries.jitter import Jitter
from perdure.policy.retries.retry import Retry
from perdure.signals.alerts.errors import DeliveryFailed, DeliveryRefused
from perdure.signals.alerts.mail import send_mail
from perdure.signals.alerts.message import document
from perdure.signals.alerts.services import notify_service
from perdure.signals.webhooks.sender import Sender
from perdure.signals.webhooks.signing import delivery_headers
from perdure.storage.port import Store
from perdure.worker.attempt.context.context import Context
from perdure.worker.settings import Queue

RETRY: Final = Retry(attempts=9, backoff=Backoff.exponential("2s", 3, "10m"), jitter=Jitter.ratio(0.2))
_DELIVERIES_AT_ONCE: Final = 4
_DELIVERY_TIMEOUT: Final = timedelta(seconds=60)
_ERROR_LIMIT_CHARACTERS: Final = 500


def serve(app: App) -> None:
    """Have every worker of this app deliver alerts, in slots of their own."""

    async def deliver(ctx: Context, notice: str, channel: str) -> None:
        await deliver_notice(await app.store(), notice, channel, ctx.attempt)

    kind = Kind(
        name=ALERT_KIND,
        handler=deliver,
        signature=Signature(deliver, Context),
        mode=Mode.TASK,
        retry=RETRY,
        queue=ALERT_QUEUE,
        timeout=_DELIVERY_TIMEOUT,
    )
    app.serve_own(kind, Queue(ALERT_QUEUE, concurrency=_DELIVERIES_AT_ONCE, reserved=True))


async def deliver_notice(store: Store, notice_id: str, name: str, attempt: int = 1) -> None:
    """Send a notice through a channel and record the outcome; raises if a retry should follow."""
    notice = await store.notice(notice_id)
    if notice is None:
        raise DeliveryRefused(f"notice {notice_id} was deleted")
    if any(one.channel == name and one.state is DeliveryState.SENT for one in notice.deliveries):
        return
    channel = next((one.channel for one in await store.alert_channels() if one.channel.name == name), None)
    if channel is None:
        raise DeliveryRefused(f"channel {name} does not exist any more")
    try:
        await _send(channel, notice, attempt, store)
    except PerdureError as error:
        await store.note_delivery(notice_id, name, str(error)[:_ERROR_LIMIT_CHARACTERS])
        raise
    except Exception as error:  # noqa: BLE001 - after any error the channel does not work; its text may hold a secret
        words = f"the delivery failed with an unexpected error: {type(error).__name__}"
        await store.note_delivery(notice_id, name, words)
        raise DeliveryFailed(words) from None
    await store.note_delivery(notice_id, name, None)


async def _send(channel: Channel, notice: Notice, attempt: int, store: Store) -> None:
    async def is_open(key: str) -> bool:
        return key in read_memory((await store.alert_book(timedelta(0))).memory).incidents

    address = unsealed("address", channel.address)
    try:
        scheme = scheme_of("address", address)
        mail = read_mail_address("address", address) if scheme in MAIL else None
    except ArgumentError as error:
        raise DeliveryRefused(str(error)) from None
    if notice.only_resolves and scheme not in INCIDENT_TOOLS:
        return
    if mail is not None:
        await send_mail(mail, notice)
    elif scheme in WEB:
        if channel.secret is None:
            raise DeliveryRefused(f"channel {channel.name} has no secret to sign with: save it again with one")
        await Sender(allow_private=channel.allow_private).send(
            address,
            document(notice),
            secret=unsealed("secret", channel.secret),
            headers=delivery_headers(notice.id, attempt, RETRY.attempts),
            timeout="20s",
        )
    else:
        await notify_service(scheme, address, notice, allow_private=channel.allow_private, is_open=is_open)
