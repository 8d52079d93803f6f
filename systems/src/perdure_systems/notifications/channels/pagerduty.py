"""PagerDuty's Events API v2."""

from __future__ import annotations

from typing import Final

import httpx
import msgspec

from perdure_systems.notifications.channels.message import Message, Severity
from perdure_systems.notifications.channels.posting import post

_SUMMARY_LIMIT_CHARACTERS: Final = 1_024


class PagerDutyChannel(msgspec.Struct, frozen=True, kw_only=True):
    """Triggers an incident. The message's id is the `dedup_key`: a repetition does not page twice."""

    base_url: str
    routing_key: str
    severity: Severity = Severity.WARNING

    async def send(self, message: Message, http: httpx.AsyncClient) -> str:
        """Send a message; PagerDuty answers 202 with the `dedup_key`."""
        event = {
            "routing_key": self.routing_key,
            "event_action": "trigger",
            "dedup_key": message.id,
            "payload": {
                "summary": message.headline[:_SUMMARY_LIMIT_CHARACTERS],
                "source": "certctl",
                "severity": message.severity or self.severity,
                "timestamp": message.created_at,
                "custom_details": {"body": message.body},
            },
        }
        await post(http, "pagerduty", f"{self.base_url.rstrip('/')}/v2/enqueue", event)
        return f"pagerduty took it as {message.id}"
