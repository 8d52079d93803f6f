"""A signed POST of JSON to an address of your own."""

from __future__ import annotations

import hashlib
import hmac

import httpx
import msgspec

from perdure_systems.notifications.channels.message import Message
from perdure_systems.notifications.channels.posting import post


class WebhookChannel(msgspec.Struct, frozen=True, kw_only=True):
    """Sends `{id, type, recipient, subject, body, metadata, created_at}`.

    With a secret the header `X-Webhook-Signature` is `sha256=` and the HMAC of the body.
    """

    url: str
    secret: str = ""

    async def send(self, message: Message, http: httpx.AsyncClient) -> str:
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
        if self.secret:
            headers["X-Webhook-Signature"] = f"sha256={signature(self.secret, body)}"
        answer = await post(http, "webhook", self.url, body, headers)
        return f"webhook answered {answer.status_code}"


def signature(secret: str, body: bytes) -> str:
    """The HMAC-SHA256 of a body, in hexadecimal digits."""
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
