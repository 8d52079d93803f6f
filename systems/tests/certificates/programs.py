"""Servers of the certificate system as processes, and ways to hold them up."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw
import httpx
import psycopg

from perdure import App
from perdure_systems.certificates.records import MIGRATIONS, Certificate
from perdure_systems.certificates.settings import LOOPS
from perdure_systems.certificates.signing import ROOT_FILE
from perdure_systems.kit.database import Database

PATIENCE = 60.0
SHOP = {"common_name": "shop.example", "owner": "ada"}
EVERY_SECOND = {loop.variable: "1s" for loop in LOOPS}


class Api(httpx.AsyncClient):
    """Requests to the API of the system, and the steps that many tests share."""

    async def requested(self, **fields: Any) -> tuple[str, str]:
        """A new certificate; its id and that of its job."""
        answer = await self.post("/api/v1/certificates", json={**SHOP, **fields})
        assert answer.status_code == 201, answer.text
        return answer.json()["id"], answer.json()["job_id"]

    async def job(self, job_id: str) -> dict[str, Any]:
        """A job as the API shows it."""
        answer = await self.get(f"/api/v1/jobs/{job_id}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def certificate(self, certificate: str) -> dict[str, Any]:
        """A certificate as the API shows it."""
        answer = await self.get(f"/api/v1/certificates/{certificate}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found


class Server:
    """A running `python -m perdure_systems certificates`, with what it has printed so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            self.lines.append(line.decode(errors="replace").rstrip())

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    async def says(self, *texts: str) -> str:
        """Wait until it prints a line with these texts; the line."""
        async with asyncio.timeout(PATIENCE):
            while not (found := [line for line in self.lines if all(text in line for text in texts)]):
                assert self.process.returncode is None, f"ended with {self.process.returncode}:\n{self.text}"
                await asyncio.sleep(0.02)
        return found[0]

    async def ended(self) -> int:
        """Wait until it has ended; its exit code."""
        async with asyncio.timeout(PATIENCE):
            code = await self.process.wait()
            await self._reading
        return code


@asynccontextmanager
async def running(url: str, *options: str, environment: dict[str, str] | None = None) -> AsyncIterator[Server]:
    """A server on this database until the block ends."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-u", "-m", "perdure_systems", "certificates", "--url", url, "--port", "0", *options),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "NO_COLOR": "1", **(environment or {})},
    )
    server = Server(process)
    try:
        yield server
    finally:
        if process.returncode is None:
            process.kill()
        await server.ended()


def certificate(now: datetime) -> Certificate:
    """A requested certificate that needs neither a CSR nor approval."""
    return Certificate(
        id="c1",
        common_name="shop.example",
        sans=[],
        status="requested",
        owner="ada",
        requested_by="ada",
        lifetime_hours=24,
        needs_csr=False,
        needs_approval=False,
        created_at=now,
    )


def logged(key: str, value: str) -> str:
    """A field as a line of the log shows it: quoted if it has a space."""
    return f"{key}={value!r} " if " " in value else f"{key}={value} "


@asynccontextmanager
async def tables_at(url: str) -> AsyncIterator[Database]:
    """The tables of the system in this database."""
    database = Database(App(url), "certificates", MIGRATIONS)
    try:
        yield database
    finally:
        await database.close()


@asynccontextmanager
async def locked(url: str, table: str) -> AsyncIterator[None]:
    """Let no other process write to a table; on SQLite, to none."""
    if url.startswith("sqlite:"):
        connection = apsw.Connection(url.removeprefix("sqlite:///"))
        connection.set_busy_timeout(30_000)
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            connection.execute("ROLLBACK")
            connection.close()
        return
    server = await psycopg.AsyncConnection.connect(url.partition("?schema")[0].replace("&schema=perdure", ""))
    async with server:
        await server.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE".encode())
        yield
        await server.rollback()


class SlowKey:
    """A root that is a pipe: who reads it waits until it is let go on. So the handler does not hear a stop."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = folder / ROOT_FILE
        self._content = self._key.read_bytes()
        self._key.unlink()
        os.mkfifo(self._key)

    async def is_being_read(self) -> int:
        """Wait until a signature waits for the key; the pipe to it."""
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    return os.open(self._key, os.O_WRONLY | os.O_NONBLOCK)
                except OSError:  # no reader yet
                    await asyncio.sleep(0.02)

    def let_go_on(self, pipe: int) -> None:
        """Give the reader its key, and put the file back for all others."""
        os.write(pipe, self._content)
        os.close(pipe)
        self.put_back()

    def put_back(self) -> None:
        """The key is a plain file again."""
        self._key.unlink()
        self._key.write_bytes(self._content)
