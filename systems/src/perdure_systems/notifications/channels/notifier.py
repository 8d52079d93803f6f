"""What every channel offers, and the error that says why a message did not go out."""

from __future__ import annotations

from typing import Protocol

import httpx

from perdure_systems.notifications.channels.message import Message


class DeliveryError(Exception):
    """A receiver did not take a message. The text never holds an address or a key: those are secrets."""


class Notifier(Protocol):
    """A channel that is set up."""

    async def send(self, message: Message, http: httpx.AsyncClient) -> str:
        """Send a message; the receiver's receipt. Raises `DeliveryError`."""
