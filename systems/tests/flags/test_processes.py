"""B2, B10: two real processors on one database, each `python -m perdure_systems flags`."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.databases.behind import query

from perdure.clock import SystemClock

from .conftest import ADMIN, AUTHORIZED

pytestmark = pytest.mark.slow

PATIENCE = 60.0
FLAGS, OF_EACH = 20, 10


class Processor:
    """A running system and what it has printed."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            self.lines.append(line.decode(errors="replace").rstrip())

    async def says(self, text: str) -> str:
        """Wait for a line with this text."""
        async with asyncio.timeout(PATIENCE):
            while not (found := [line for line in self.lines if text in line]):
                assert self.process.returncode is None, "\n".join(self.lines)
                await asyncio.sleep(0.02)
        return found[0]

    async def stop(self) -> int:
        """Ask it to stop; its exit code."""
        if self.process.returncode is None:
            self.process.terminate()
        async with asyncio.timeout(PATIENCE):
            code = await self.process.wait()
            await self._reading
        return code


async def start(url: str, **environment: str) -> Processor:
    """A system with API and jobs, on a port of its own."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "perdure_systems", "flags", "--url", url, "--port", "0"),
        env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    return Processor(process)


@asynccontextmanager
async def processors(url: str, number: int) -> AsyncIterator[list[Processor]]:
    """So many systems on one database."""
    started = [await start(url, FLAG_ADMIN_TOKENS=f"ada:{ADMIN}") for _ in range(number)]
    try:
        yield started
    finally:
        for one in started:
            await one.stop()


async def settled(client: httpx.AsyncClient) -> list[dict[str, Any]]:
    """All schedules, as soon as none is pending any more."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found: list[dict[str, Any]] = (await client.get("/api/admin/flag-schedules?per_page=500")).json()[
                "schedules"
            ]
            if all(one["status"] != "pending" for one in found):
                return found
            await asyncio.sleep(0.1)


async def test_b10_b2_two_processors_apply_each_schedule_once_and_in_time(engine_url: str) -> None:
    """The original's row lock ended with its SELECT: both processors ran what both had seen.

    All schedules are due at one moment, twice as many as a processor takes in a run. Those of a deleted flag fail, and
    hold up no others. These are applied within 60 s of their time, each by one processor, once.
    """
    async with processors(engine_url, 2) as (one, two):
        address = (await one.says("✿ Flags at")).split()[-1]
        await two.says("✿ Flags at")
        async with httpx.AsyncClient(base_url=address, headers=AUTHORIZED, timeout=30) as client:
            for number in range(FLAGS):
                await client.post("/api/admin/flags", json={"key": f"flag-{number}"})
            due = SystemClock().now() + timedelta(seconds=10)
            body = {"updates": {"enabled": True}, "scheduledAt": due.isoformat()}
            batch = [{"flagKey": f"flag-{number}", "schedule": body} for number in range(FLAGS) for _ in range(OF_EACH)]
            for half in (batch[:100], batch[100:]):
                made = await client.post("/api/admin/flag-schedules", json={"schedules": half})
                assert made.status_code == 201, made.text
            await client.delete("/api/admin/flags/flag-0")
            found = await settled(client)
        assert [(await processor.stop()) for processor in (one, two)] == [0, 0]
    failed = [schedule["flagKey"] for schedule in found if schedule["status"] == "failed"]
    assert (failed, len(found)) == (["flag-0"] * OF_EACH, FLAGS * OF_EACH)
    late = [datetime.fromisoformat(schedule["appliedAt"]) - due for schedule in found if schedule["appliedAt"]]
    assert timedelta(0) <= min(late)
    assert max(late) < timedelta(seconds=60)
    changes = query(engine_url, changes_sql(engine_url))
    assert sorted(changes) == sorted((schedule["id"], 1) for schedule in found if schedule["status"] == "applied")
    workers = {name for (name,) in query(engine_url, "SELECT DISTINCT worker FROM {finished} WHERE worker IS NOT NULL")}
    assert len(workers) == 2, "both took part"


def changes_sql(url: str) -> str:
    """How often each schedule has changed a flag."""
    table = "flag_change" if url.startswith("sqlite:") else "public.flag_change"
    return f"SELECT schedule_id, count(*) FROM {table} WHERE schedule_id IS NOT NULL GROUP BY schedule_id"


async def test_b8_a_system_does_not_start_with_a_limit_out_of_bounds(tmp_path: Path) -> None:
    process = await start(f"sqlite:///{tmp_path / 'flags.db'}", FLAG_SCHEDULE_MAX_RETRIES="15")
    async with asyncio.timeout(PATIENCE):
        code = await process.process.wait()
    await process.stop()
    assert code == 1
    assert "FLAG_SCHEDULE_MAX_RETRIES must be a whole number from 0 to 10, got 15" in "\n".join(process.lines)
