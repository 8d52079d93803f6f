"""A bad line between a client and a PostgreSQL server: any request can be lost, or its answer.

What matters is the moment. Lost *before* it was passed on, a request never happened; lost *after*, it was carried out
and no caller was told: a commit in doubt.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from urllib.parse import parse_qsl, urlsplit

from tests.support.databases.behind import with_option

_SOCKET: Final = ".s.PGSQL.5432"
_CHUNK: Final = 1024 * 1024
_TIME_TO_ACT: Final = 0.05


class Cut(StrEnum):
    """What becomes of a request; the connection that it came over is cut."""

    BEFORE = "lost on its way to the server"
    AFTER = "carried out, its answer lost"


Choice = Callable[[int, bytes], Cut | None]


class BadLine:
    """Listens at `url`; `choose` is asked about each request, by its number over all connections and its bytes."""

    def __init__(self, server: str, folder: Path) -> None:
        self._target = Path(dict(parse_qsl(urlsplit(server).query))["host"]) / _SOCKET
        self._path = folder / _SOCKET
        self.url = with_option(server, "host", str(folder))
        self.requests = 0
        self.cuts: Counter[Cut] = Counter()
        self.mend()
        self._conversations: set[asyncio.Task[None]] = set()

    def mend(self) -> None:
        """Lose nothing any more."""
        self.choose: Choice = lambda _number, _request: None

    def cut_at(self, moment: int, how: Cut) -> Callable[[], bool]:
        """Lose one request, counted from now on; ask the answer whether it has come."""
        before, cuts = self.requests, self.cuts.total()
        self.choose = lambda number, _request: how if number - before == moment else None
        return lambda: self.cuts.total() > cuts

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_unix_server(self._serve, self._path)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._server.close()
        for conversation in self._conversations:
            conversation.cancel()
        await asyncio.gather(*self._conversations, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        conversation = asyncio.current_task()
        if conversation is not None:
            self._conversations.add(conversation)
            conversation.add_done_callback(self._conversations.discard)
        with suppress(OSError, asyncio.CancelledError):
            away_reader, away_writer = await asyncio.open_unix_connection(self._target)
            answers = asyncio.create_task(_pass_on(away_reader, writer))
            try:
                await self._pass_requests_on(reader, away_writer, answers)
            finally:
                answers.cancel()
                away_writer.transport.abort()
                writer.transport.abort()

    async def _pass_requests_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answers: asyncio.Task[None]
    ) -> None:
        while request := await reader.read(_CHUNK):
            self.requests += 1
            cut = self.choose(self.requests, request)
            if cut is Cut.AFTER:
                answers.cancel()
            if cut is not Cut.BEFORE:
                writer.write(request)
                await writer.drain()
            if cut is not None:
                self.cuts[cut] += 1
                if cut is Cut.AFTER:
                    await asyncio.sleep(_TIME_TO_ACT)  # by then the server has done it; the promises hold either way
                return


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while answer := await reader.read(_CHUNK):
            writer.write(answer)
            await writer.drain()
    writer.transport.abort()
