"""A stop waits for loops and work in flight, and says what still runs when its time is up."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import httpx
import msgspec
import pytest
from systems.tests.certificates.programs import PATIENCE, SlowKey, locked, running

from perdure import JobState, StillRunning, Worker, WorkerSettings
from perdure.domain.duration import parse_duration
from perdure.testing import Sandbox
from perdure_systems.certificates.jobs import app, database, issue
from perdure_systems.certificates.signing import Authority, make_csr
from perdure_systems.certificates.system import SYSTEM
from perdure_systems.kit.service import run_system
from perdure_systems.notifications.jobs import app as notifications_app

SHOP = {"common_name": "shop.example", "owner": "ada"}


@pytest.fixture
async def slow_key(authority: Path) -> SlowKey:
    """A root whose key cannot be read yet: every signature waits."""
    async with Sandbox(app) as box:
        Authority(authority).sign(make_csr("a.example")[0], ["a.example"], timedelta(hours=1), box.now)
    return SlowKey(authority)


async def requested(client: httpx.AsyncClient) -> str:
    answer = await client.post("/api/v1/certificates", json=SHOP)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["job_id"])


async def test_a18_a20_a_stop_waits_for_work_before_http_and_database_close(engine_url: str, slow_key: SlowKey) -> None:
    """While the signature is still under way, the API answers. Then the job is done, and the exit code is 0."""
    async with running(engine_url) as server:
        address = (await server.says("✿ Certificates at")).rpartition(" ")[2]
        async with httpx.AsyncClient(base_url=address, timeout=PATIENCE) as client:
            job = await requested(client)
            pipe = await slow_key.is_being_read()
            server.process.send_signal(signal.SIGTERM)
            await server.says("waiting for scheduler to complete in-flight work")
            shown = (await client.get(f"/api/v1/jobs/{job}")).json()
            assert shown["status"] == "Running"
            slow_key.let_go_on(pipe)
            assert await server.ended() == 0
    async with Sandbox(app, url=engine_url, periodic=False):
        assert (await app.handle(job).view()).state == JobState.SUCCEEDED


async def test_a18_a20_past_its_limit_a_drain_names_what_still_runs(engine_url: str, slow_key: SlowKey) -> None:
    """The signature reads a pipe in a thread: it does not hear that it is told to stop."""
    async with _working(engine_url, WorkerSettings(grace="100ms", stop_timeout="500ms")) as worker:
        await _one_certificate()
        handle = await issue.enqueue("c1")
        pipe = await slow_key.is_being_read()
        with pytest.raises(StillRunning) as stopped:
            await worker.wait_for_completion("300ms")
        assert [(job.kind, str(job.job_id)) for job in stopped.value.jobs] == [("certificates.issue", str(handle.id))]
        assert "certificates.issue" in str(stopped.value)
        slow_key.let_go_on(pipe)


def test_a18_the_default_limit_is_thirty_seconds() -> None:
    default = inspect.signature(Worker.wait_for_completion).parameters["timeout"].default
    assert timedelta(seconds=30) == parse_duration("timeout", default)


async def test_a18_a20_a_drain_waits_for_a_tick_under_way(engine_url: str) -> None:
    """A tick that waits for a lock keeps the drain waiting; without the lock the drain ends."""
    async with _working(engine_url, WorkerSettings(grace="100ms", stop_timeout="500ms")) as worker:
        async with locked(engine_url, "certificate_loop"):
            loop = app.periodic["certificates.short-lived"]
            tick = asyncio.create_task(loop.function())
            with pytest.raises(StillRunning) as stopped:
                await worker.wait_for_completion("300ms")
            assert any(name.startswith("certificates.") for name in stopped.value.loops), stopped.value.names
        await tick


async def test_a19_started_is_signalled_when_the_loops_run_and_not_after_a_timer(engine_url: str) -> None:
    """A worker that cannot register has not started, however much time passes."""
    async with Sandbox(app, url=engine_url, periodic=False):
        await database.migrate()
        worker = await app.worker()
        async with locked(engine_url, "perdure.worker"):
            running_worker = asyncio.create_task(worker.run())
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(worker.started(), 1)
        await asyncio.wait_for(worker.started(), PATIENCE)
        await worker.wait_for_completion()
        await running_worker
        await database.close()


async def test_a16_a_worker_that_is_silent_for_five_minutes_loses_its_jobs(
    engine_url: str, slow_key: SlowKey, authority: Path
) -> None:
    """A server is frozen in the middle of a job. Another one leaves the job alone for 5 minutes, then takes it."""
    async with running(engine_url) as server:
        address = (await server.says("✿ Certificates at")).rpartition(" ")[2]
        async with httpx.AsyncClient(base_url=address, timeout=PATIENCE) as client:
            job = await requested(client)
        pipe = await slow_key.is_being_read()
        server.process.send_signal(signal.SIGSTOP)
        os.close(pipe)
        slow_key.put_back()
        frozen_at = time.monotonic()
        async with _working(engine_url, msgspec.structs.replace(app.worker_settings, sweep="500ms")):
            box = _sandboxes[-1]
            box.travel("4m30s")
            for _ in range(20):  # four sweeps look at it and leave it alone
                await asyncio.sleep(0.1)
                assert (await app.handle(job).view()).state == JobState.RUNNING
            assert time.monotonic() - frozen_at < 25, "too slow a machine to tell 4m30s from 5m"
            box.travel("1m")
            assert await app.handle(job).result(PATIENCE)
            assert (await app.handle(job).view()).crashes == 1
        server.process.send_signal(signal.SIGCONT)


async def test_a20_the_whole_system_stops_in_order(engine_url: str) -> None:
    """Started with all parts, stopped by its event: no task, no connection and no worker is left."""
    stop = asyncio.Event()
    opened: list[str] = []
    async with Sandbox(app, url=engine_url), Sandbox(notifications_app, url=engine_url):
        system = asyncio.create_task(run_system(SYSTEM, port=0, stop=stop, when_open=opened.append))
        async with asyncio.timeout(PATIENCE):
            while not opened:
                await asyncio.sleep(0.02)
            async with httpx.AsyncClient() as client:
                assert (await client.get(f"{opened[0]}/health")).json() == {"status": "ok"}
            stop.set()
            await system
        assert [one for one in await (await app.desk("test")).workers() if one.dead_at is None] == []


_sandboxes: list[Sandbox] = []


@asynccontextmanager
async def _working(
    url: str, settings: WorkerSettings | None = None, *, periodic: bool = False
) -> AsyncIterator[Worker]:
    """A worker of the system in this process, in a sandbox's time."""
    async with Sandbox(app, url=url, periodic=periodic) as box, Sandbox(notifications_app, url=url, periodic=False):
        _sandboxes.append(box)
        await database.migrate()
        worker = await app.worker(settings)
        task = asyncio.create_task(worker.run())
        try:
            await asyncio.wait_for(worker.started(), PATIENCE)
            yield worker
        finally:
            worker.stop()
            await asyncio.wait_for(task, PATIENCE)
            await database.close()
            _sandboxes.pop()


async def _one_certificate() -> None:
    await database.execute(
        "INSERT INTO certificate (id, common_name, sans, status, owner, lifetime_hours, needs_csr, needs_approval,"
        " created_at) VALUES ('c1', 'c.example', '[]', 'requested', 'ada', 24, :no, :no, :now)",
        {"no": False, "now": _sandboxes[-1].now},
    )
