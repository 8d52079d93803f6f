"""A stop waits for loops and work in flight, and says what still runs when its time is up."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

import httpx
import msgspec
import pytest
from systems.tests.certificates.programs import PATIENCE, Api, SlowKey, certificate, locked, running
from tests.support.waiting import is_stopped, until

from perdure import JobState, StillRunning, Worker, WorkerSettings
from perdure.clock import SystemClock
from perdure.testing import Sandbox
from perdure_systems.certificates.jobs import app, database, issue
from perdure_systems.certificates.records import LoopRun, add_certificate
from perdure_systems.certificates.signing import Authority, make_csr
from perdure_systems.certificates.standins import SilentEndpoint, silent_endpoint
from perdure_systems.certificates.system import SYSTEM
from perdure_systems.kit import service
from perdure_systems.kit.service import run_system
from perdure_systems.notifications.jobs import app as notifications_app

IMPATIENT = WorkerSettings(grace="100ms", stop_timeout="500ms")


@pytest.fixture
def slow_key(authority: Path) -> SlowKey:
    """A root whose key cannot be read yet: every signature waits, in a thread that hears no stop."""
    Authority(authority).sign(make_csr("a.example")[0], ["a.example"], timedelta(hours=1), SystemClock().now())
    return SlowKey(authority)


@pytest.fixture
async def slow_scan(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SilentEndpoint]:
    """An endpoint that does not answer yet: the network scan, which begins at once, waits for it."""
    async with silent_endpoint() as endpoint:
        monkeypatch.setenv("CERTCTL_NETWORK_SCAN_ENDPOINTS", endpoint.address)
        yield endpoint


async def test_a18_a20_a_stop_waits_for_work_before_http_and_database_close(engine_url: str, slow_key: SlowKey) -> None:
    """While the signature is under way, the API answers from the database. Then the job is done, and it ends with 0."""
    async with running(engine_url) as server:
        address = (await server.says("✿ Certificates at")).rpartition(" ")[2]
        async with Api(base_url=address, timeout=PATIENCE) as client:
            _, job = await client.requested()
            pipe = await slow_key.is_being_read()
            server.process.send_signal(signal.SIGTERM)
            await server.says(" waiting for scheduler to complete in-flight work ", "running=1", "within=30.0")
            assert (await client.job(job))["status"] == "Running"
            slow_key.let_go_on(pipe)
            assert await server.ended() == 0
    async with Sandbox(app, url=engine_url, periodic=False):
        assert (await app.handle(job).view()).state == JobState.SUCCEEDED


async def test_a18_a20_past_its_limit_a_drain_names_what_still_runs(engine_url: str, slow_key: SlowKey) -> None:
    """The signature reads a pipe in a thread: it ignores that it is told to stop."""
    async with _working(engine_url, IMPATIENT) as (worker, box):
        handle = await _one_job(box)
        pipe = await slow_key.is_being_read()
        with pytest.raises(StillRunning) as stopped:
            await worker.wait_for_completion("300ms")
        assert [(job.kind, str(job.job_id)) for job in stopped.value.jobs] == [("certificates.issue", handle)]
        assert f"job certificates.issue {handle}" in str(stopped.value)
        slow_key.let_go_on(pipe)


def test_a18_the_default_limit_is_thirty_seconds() -> None:
    assert inspect.signature(Worker.wait_for_completion).parameters["timeout"].default in {"30s", timedelta(seconds=30)}
    assert service.STOP_TIMEOUT == "30s"


async def test_a18_a20_a_drain_waits_for_a_tick_under_way(engine_url: str, slow_scan: SilentEndpoint) -> None:
    """The drain does not end before the tick does, and the tick is not cut off: it notes what it did."""
    async with _working(engine_url, IMPATIENT) as (worker, _):
        await asyncio.wait_for(slow_scan.asked.wait(), PATIENCE)
        drain = asyncio.create_task(worker.wait_for_completion("30s"))
        done, _ = await asyncio.wait({drain}, timeout=0.5)
        assert not done
        slow_scan.let_go_on()
        await asyncio.wait_for(drain, PATIENCE)
        ran = await database.one(LoopRun, "SELECT * FROM certificate_loop WHERE name = 'network scan'")
        assert ran is not None
        assert ran.did == "0 certificates found"


async def test_a18_a20_past_its_limit_a_drain_names_the_loop_that_still_runs(
    engine_url: str, slow_scan: SilentEndpoint
) -> None:
    async with _working(engine_url, IMPATIENT) as (worker, _):
        await asyncio.wait_for(slow_scan.asked.wait(), PATIENCE)
        with pytest.raises(StillRunning) as stopped:
            await worker.wait_for_completion("100ms")
        assert [name for name in stopped.value.loops if name.startswith("certificates.network scan")]
        assert "certificates.network scan" in str(stopped.value)
        slow_scan.let_go_on()


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


async def test_a16_a_worker_that_is_silent_for_five_minutes_loses_its_jobs(engine_url: str, slow_key: SlowKey) -> None:
    """A server is frozen in the middle of a job. Another one leaves the job alone for 5 minutes, then takes it."""
    began = SystemClock().now()
    async with running(engine_url) as server:
        address = (await server.says("✿ Certificates at")).rpartition(" ")[2]
        async with Api(base_url=address, timeout=PATIENCE) as client:
            _, job = await client.requested()
        pipe = await slow_key.is_being_read()
        async with locked(engine_url, "certificate_loop"):  # a process that is frozen with SQLite's lock keeps it
            server.process.send_signal(signal.SIGSTOP)
            await until(lambda: is_stopped(server.process.pid))
            frozen = SystemClock().now()
        os.close(pipe)
        slow_key.put_back()
        eager = msgspec.structs.replace(app.worker_settings, sweep="500ms")
        async with _working(engine_url, eager, start=began + timedelta(minutes=4, seconds=59)):
            for _ in range(15):  # several sweeps look at it and leave it alone
                await asyncio.sleep(0.1)
                assert (await app.handle(job).view()).state == JobState.RUNNING
        async with _working(engine_url, eager, start=frozen + timedelta(minutes=5, seconds=1)):
            assert await app.handle(job).result(PATIENCE)
            assert (await app.handle(job).view()).crashes == 1
        server.process.send_signal(signal.SIGCONT)


async def test_a20_the_whole_system_stops_in_order(engine_url: str) -> None:
    """Started with all parts, stopped by its event: no task, no worker and no open port is left."""
    stop = asyncio.Event()
    opened: list[str] = []
    before = asyncio.all_tasks()
    async with Sandbox(app, url=engine_url), Sandbox(notifications_app, url=engine_url):
        system = asyncio.create_task(run_system(SYSTEM, port=0, stop=stop, when_open=opened.append))
        async with asyncio.timeout(PATIENCE), httpx.AsyncClient() as client:
            while not opened:
                await asyncio.sleep(0.02)
            assert (await client.get(f"{opened[0]}/desk/healthz")).status_code == 200
            assert len([one for one in await (await app.desk("test")).workers() if one.dead_at is None]) == 2
            stop.set()
            await system
            with pytest.raises(httpx.ConnectError):
                await client.get(f"{opened[0]}/desk/healthz")
        assert [one for one in await (await app.desk("test")).workers() if one.dead_at is None] == []
        assert asyncio.all_tasks() - before == set()


@asynccontextmanager
async def _working(
    url: str, settings: WorkerSettings | None = None, start: datetime | None = None
) -> AsyncIterator[tuple[Worker, Sandbox]]:
    """A worker of the system in this process, with its loops, in a sandbox's time."""
    async with (
        Sandbox(app, url=url, periodic=False, start=start) as box,
        Sandbox(notifications_app, url=url, periodic=False, start=start),
    ):
        await database.migrate()
        worker = await app.worker(settings)
        task = asyncio.create_task(worker.run())
        try:
            await asyncio.wait_for(worker.started(), PATIENCE)
            yield worker, box
        finally:
            worker.stop()
            await asyncio.wait_for(task, PATIENCE)
            await database.close()


async def _one_job(box: Sandbox) -> str:
    async with database.transaction() as session:
        await add_certificate(session, certificate(box.now))
        return str((await issue.using(connection=session.connection).enqueue("c1")).id)
