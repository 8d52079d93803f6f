"""Microsoft Teams: a workflow's webhook that takes an adaptive card."""

from __future__ import annotations

import httpx
import msgspec

from perdure_systems.notifications.channels.message import Message
from perdure_systems.notifications.channels.posting import post


class TeamsChannel(msgspec.Struct, frozen=True, kw_only=True):
    """Sends a card with the subject as its heading; Teams answers 202."""

    url: str

    async def send(self, message: Message, http: httpx.AsyncClient) -> str:
        """Send a message."""
        card = {
            "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
            "type": "AdaptiveCard",
            "version": "1.4",
            "body": [
                {"type": "TextBlock", "text": message.headline, "weight": "Bolder", "size": "Medium", "wrap": True},
                {"type": "TextBlock", "text": message.body, "wrap": True},
            ],
        }
        attachment = {
            "contentType": "application/vnd.microsoft.card.adaptive",
            "contentUrl": None,
            "content": card,
        }
        answer = await post(http, "teams", self.url, {"type": "message", "attachments": [attachment]})
        return f"teams answered {answer.status_code}"
