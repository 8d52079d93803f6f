"""Real receivers on loopback: a mail server, one that hangs, and an app whose alerts go there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP

from perdure import App


class Inbox:
    """What a mail server has taken; `answer` is what it says to a message instead, `answers` to a receiver."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.answer = ""
        self.answers: dict[str, str] = {}
        self.port = 0

    async def handle_RCPT(  # noqa: N802 - its name there
        self, _server: Any, _session: Any, envelope: Any, address: str, _options: Any
    ) -> str:
        if address not in self.answers:
            envelope.rcpt_tos.append(address)
        return self.answers.get(address, "250 fine")

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802 - its name there
        if self.answer:
            return self.answer
        self.mails.append(message_from_bytes(envelope.content, policy=policy.default))
        return "250 taken"

    @property
    def address(self) -> str:
        return f"smtp://127.0.0.1:{self.port}/?from=perdure@example.com&to=ops@example.com,b@example.com&tls=none"


@pytest.fixture
async def inbox() -> AsyncIterator[Inbox]:
    """A real mail server."""
    inbox = Inbox()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(inbox, hostname="localhost", loop=loop), "127.0.0.1", 0)
    inbox.port = server.sockets[0].getsockname()[1]
    try:
        yield inbox
    finally:
        server.close()


@asynccontextmanager
async def server_that(act: Any) -> AsyncIterator[int]:
    """A server on loopback that does this with each connection; its port."""
    server = await asyncio.start_server(act, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    """An app on a file of its own."""
    async with App(f"sqlite:///{tmp_path}/shop.db") as app:
        yield app
