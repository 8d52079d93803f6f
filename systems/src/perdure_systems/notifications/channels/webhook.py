"""A signed POST of JSON to an address of your own."""

from __future__ import annotations

from typing import Final

import httpx
import msgspec

from perdure.webhooks import Sender, SendFailed, SendRefused
from perdure_systems.notifications.channels.message import Message
from perdure_systems.notifications.channels.notifier import DeliveryError
from perdure_systems.notifications.channels.posting import refusal

DELIVERY_TIMEOUT: Final = "10s"
_sender: Final = Sender(allow_private=True)  # the settings name the address: no stranger chose it


class WebhookChannel(msgspec.Struct, frozen=True, kw_only=True):
    """Sends `{id, type, recipient, subject, body, metadata, created_at}`.

    With a secret it is signed as all webhooks of perdure are: `perdure.webhooks.verify` checks it.
    """

    url: str
    secret: str = ""

    async def send(self, message: Message, http: httpx.AsyncClient) -> str:  # noqa: ARG002 - has its own connection
        """Send a message."""
        body = msgspec.json.encode(
            {
                "id": message.id,
                "type": "notification",
                "recipient": message.recipient,
                "subject": message.headline,
                "body": message.body,
                "metadata": {"severity": message.severity},
                "created_at": message.created_at,
            }
        )
        headers = {"Idempotency-Key": message.id}
        try:
            answer = await _sender.send(
                self.url, body, secret=self.secret or None, headers=headers, timeout=DELIVERY_TIMEOUT
            )
        except (SendFailed, SendRefused) as error:
            raise _without_address(error) from None
        return f"webhook answered {answer.status}"


def _without_address(error: SendFailed | SendRefused) -> DeliveryError:
    """Every failure is retried; what the sender says names the receiver's address, so it is not repeated."""
    if error.answer is not None:
        return refusal("webhook", error.answer.status, error.answer.body.decode(errors="replace"))
    if isinstance(error, SendRefused):
        return DeliveryError("webhook cannot be sent: check that CERTCTL_WEBHOOK_URL is an http or https URL")
    return DeliveryError("webhook was not reached, or did not answer in time")
