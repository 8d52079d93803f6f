"""Slack's incoming webhooks."""

from __future__ import annotations

from typing import Any

import httpx
import msgspec

from perdure_systems.notifications.channels.message import Message
from perdure_systems.notifications.channels.posting import post


class SlackChannel(msgspec.Struct, frozen=True, kw_only=True):
    """Sends to the channel that the webhook belongs to, or to `channel` where the webhook allows it."""

    url: str
    channel: str = ""
    username: str = "certctl"

    async def send(self, message: Message, http: httpx.AsyncClient) -> str:
        """Send a message; Slack answers `ok`."""
        content: dict[str, Any] = {
            "text": f"*{_escaped(message.headline)}*\n{_escaped(message.body)}",
            "username": self.username,
        }
        if self.channel:
            content["channel"] = self.channel
        answer = await post(http, "slack", self.url, content)
        return f"slack answered {answer.text[:50]}"


def _escaped(text: str) -> str:
    """Slack's three control characters: a text must neither mention all members nor make a link."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
