"""OpsGenie's Alert API."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import httpx
import msgspec

from perdure_systems.notifications.channels.message import Message, Severity
from perdure_systems.notifications.channels.posting import post

_MESSAGE_LIMIT_CHARACTERS: Final = 130
_DESCRIPTION_LIMIT_CHARACTERS: Final = 15_000


class Priority(StrEnum):
    """OpsGenie's priorities, the most urgent first."""

    P1 = "P1"
    P2 = "P2"
    P3 = "P3"
    P4 = "P4"
    P5 = "P5"


_PRIORITIES: Final = {
    Severity.CRITICAL: Priority.P1,
    Severity.ERROR: Priority.P2,
    Severity.WARNING: Priority.P3,
    Severity.INFO: Priority.P5,
}


class OpsGenieChannel(msgspec.Struct, frozen=True, kw_only=True):
    """Creates an alert. The message's id is its `alias`: OpsGenie counts a repetition as the same alert."""

    base_url: str
    api_key: str
    priority: Priority = Priority.P3

    async def send(self, message: Message, http: httpx.AsyncClient) -> str:
        """Send a message; OpsGenie answers 202 and works on it afterwards."""
        alert = {
            "message": message.headline[:_MESSAGE_LIMIT_CHARACTERS],
            "alias": message.id,
            "description": message.body[:_DESCRIPTION_LIMIT_CHARACTERS],
            "priority": self.priority if message.severity is None else _PRIORITIES[message.severity],
            "source": "certctl",
        }
        headers = {"Authorization": f"GenieKey {self.api_key}"}
        await post(http, "opsgenie", f"{self.base_url.rstrip('/')}/v2/alerts", alert, headers)
        return f"opsgenie took it as {message.id}"
