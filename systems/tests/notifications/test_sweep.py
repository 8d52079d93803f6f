"""The retry loop: always on, guarded, drained at shutdown, bounded, in order, and never a second send."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from perdure import App, Event, JobFilter, Page, SettingsError, Worker
from perdure.events import LoopSkipped
from perdure.testing import Sandbox
from perdure_systems.notifications.jobs import Swept, app, notify, sweep_retries
from perdure_systems.notifications.settings import RETRY_INTERVAL, retry_interval
from perdure_systems.notifications.standins import StandIns

LOOP = "notifications.retry"


@asynccontextmanager
async def running_worker() -> AsyncIterator[Worker]:
    worker = await app.worker()
    running = asyncio.create_task(worker.run())
    await worker.started()
    try:
        yield worker
    finally:
        worker.stop()
        await running


async def until(condition: Callable[[], bool], within: float = 20.0) -> None:
    """Wait for something that another task or process does."""
    async with asyncio.timeout(within):
        while not condition():
            await asyncio.sleep(0.02)


async def failed_once(box: Sandbox, number: int) -> list[str]:
    """So many notifications whose first attempt has failed, each due a second after the one before it."""
    ids: list[str] = []
    for _ in range(number):
        ids.append((await notify.enqueue(channel="slack", subject="s", body="b")).id)
        await box.drain()
        box.travel("1s")
    return ids


def test_a8_the_loop_is_declared_with_its_interval_and_limit() -> None:
    declared = app.periodic[LOOP]
    assert (declared.every, declared.limit) == (timedelta(minutes=2), timedelta(minutes=2))
    assert declared.at_start is True


def test_a8_the_variable_sets_the_interval_and_less_than_a_second_is_refused_by_name() -> None:
    assert retry_interval({}) == timedelta(minutes=2)
    assert retry_interval({RETRY_INTERVAL: "45s"}) == timedelta(seconds=45)
    with pytest.raises(SettingsError, match=f"{RETRY_INTERVAL} must be at least 1s, got '?500ms"):
        retry_interval({RETRY_INTERVAL: "500ms"})


def test_a8_the_variable_reaches_the_loop_of_a_process() -> None:
    program = "from perdure_systems.notifications.jobs import app; print(app.periodic['notifications.retry'].every)"
    environment = os.environ | {RETRY_INTERVAL: "7s"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0:00:07"


async def test_a8_a_sweep_takes_the_oldest_due_first_and_at_most_a_thousand(
    box: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 1,100 late retries the sweep leaves the hundred that are due last to the next one."""
    monkeypatch.setenv("CERTCTL_SMTP_HOST", "127.0.0.1")  # without a recipient an attempt fails before any network
    due: dict[str, datetime] = {}
    for number in (600, 400, 100):
        await app.enqueue_many([notify.call(channel="email", subject="s", body="b") for _ in range(number)])
        for job in (await box.drain(limit=5_000, concurrency=100)).jobs:
            assert job.due_at is not None
            due[job.id] = job.due_at
        box.travel("1s")
    assert len(due) == 1_100
    box.travel("10m")
    assert await sweep_retries() == Swept(late=1_000, released=1_000)

    left = (await (await app.desk("test")).jobs(JobFilter(states="retrying"), Page(500))).jobs
    assert len(left) == 100
    latest = sorted(due, key=lambda job_id: due[job_id])[-100:]
    assert {job.id for job in left} == set(latest)
    assert all(job.failures == 1 for job in left)
    assert await sweep_retries() == Swept(late=100, released=100)
    assert await sweep_retries() == Swept()


async def test_a8_an_error_of_one_row_does_not_abort_the_sweep(
    box: Sandbox, refuse: Callable[..., None], run_sql: Callable[[str, str], None]
) -> None:
    """The database refuses to move the second of three: the third is made ready all the same."""
    refuse(3)
    first, bad, last = await failed_once(box, 3)
    run_sql(
        f"CREATE TRIGGER bad BEFORE DELETE ON perdure_parked WHEN OLD.job_id = '{bad}' "
        "BEGIN SELECT RAISE(ABORT, 'this row is bad'); END;",
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'bad row'; END $$;"
        "CREATE TRIGGER bad BEFORE DELETE ON parked FOR EACH ROW "
        f"WHEN (OLD.job_id = '{bad}') EXECUTE FUNCTION perdure.refuse();",
    )
    box.travel("10m")
    assert await sweep_retries() == Swept(late=3, released=2)
    desk = await app.desk("test")
    states = [(await desk.job(one)).job.state for one in (first, bad, last)]
    assert states == ["ready", "retrying", "ready"]


async def test_a8_workers_send_due_retries_even_if_one_row_is_bad(
    box: Sandbox, refuse: Callable[..., None], receivers: StandIns, run_sql: Callable[[str, str], None]
) -> None:
    """The engine's own sweep, which comes every second, goes on after a row that cannot be moved."""
    refuse(3)
    _, bad, _ = await failed_once(box, 3)
    run_sql(
        f"CREATE TRIGGER bad BEFORE DELETE ON perdure_parked WHEN OLD.job_id = '{bad}' "
        "BEGIN SELECT RAISE(ABORT, 'this row is bad'); END;",
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'bad row'; END $$;"
        "CREATE TRIGGER bad BEFORE DELETE ON parked FOR EACH ROW "
        f"WHEN (OLD.job_id = '{bad}') EXECUTE FUNCTION perdure.refuse();",
    )
    box.travel("10m")
    async with running_worker():
        await until(lambda: len(receivers.taken["slack"]) == 2)


async def test_a8_a_tick_that_comes_while_the_last_one_runs_is_skipped(
    box: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    skipped: list[Event] = []
    at_once = most_at_once = 0

    async def slow() -> None:
        nonlocal at_once, most_at_once
        at_once += 1
        most_at_once = max(at_once, most_at_once)
        await sweep_retries()
        await until(lambda: bool(skipped))
        at_once -= 1

    often = replace(app.periodic[LOOP], every=timedelta(seconds=1), jitter=0.0, function=slow)
    monkeypatch.setitem(app.periodic, LOOP, often)
    unsubscribe = app.subscribe(skipped.append, LoopSkipped)
    async with running_worker():
        await until(lambda: bool(skipped))
    unsubscribe()
    assert skipped[0].sentence == "still running, skipping tick"
    assert most_at_once == 1


async def test_a8_a_stop_waits_for_the_sweep_and_for_what_is_being_sent(
    box: Sandbox, receivers: StandIns, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, go_on, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slow() -> None:
        began.set()
        await go_on.wait()
        await sweep_retries()
        ended.set()

    monkeypatch.setitem(app.periodic, LOOP, replace(app.periodic[LOOP], function=slow))
    receivers.knobs["slack"].slow = 0.5
    handle = await notify.enqueue(channel="slack", subject="s", body="b")
    async with running_worker() as worker:
        await began.wait()
        await until(lambda: receivers.seen["slack"] == 1)
        stopping = asyncio.create_task(worker.wait_for_completion("20s"))
        await until(lambda: len(receivers.taken["slack"]) == 1)
        assert not stopping.done()
        go_on.set()
        await stopping
    assert ended.is_set()
    assert (await handle.view()).state == "succeeded"


async def test_a8_two_servers_send_each_due_retry_once(
    engine_url: str, refuse: Callable[..., None], receivers: StandIns, tmp_path: Path
) -> None:
    """The original took no claim: both servers found the same rows and both sent them."""
    number = 120  # more than one server takes at once
    async with Sandbox(app, url=engine_url) as box:
        now = box.now
    async with Sandbox(app, url=engine_url, start=now - timedelta(hours=1)) as box:
        refuse(number)
        for at in range(number):
            await notify.enqueue(channel="webhook", subject=str(at), body="b")
        assert (await box.drain(concurrency=20)).retrying == number
    receivers.knobs["webhook"].slow = 0.1
    outside = App(engine_url)
    desk = await outside.desk("test")
    await desk.holds.pause(queue="notifications", why="until both servers are open")
    command = [sys.executable, "-m", "perdure_systems", "notifications", "--url", engine_url, "--no-http"]
    environment = os.environ | {RETRY_INTERVAL: "1s"}
    servers = [
        await asyncio.create_subprocess_exec(*command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL)
        for _ in range(2)
    ]
    try:
        async with asyncio.timeout(60):
            while not {server.pid for server in servers} <= {
                worker.process.pid for worker in await desk.workers() if worker.phase == "open"
            }:
                await asyncio.sleep(0.05)
        await desk.holds.resume(queue="notifications")
        await until(lambda: len(receivers.taken["webhook"]) >= number, within=60)
        async with asyncio.timeout(20):  # then nothing is left that could be sent twice
            while (await desk.count(JobFilter(states="succeeded"))).jobs < number:
                await asyncio.sleep(0.05)
    finally:
        await outside.close()
        for server in servers:
            server.send_signal(signal.SIGTERM)
        codes = [await asyncio.wait_for(server.wait(), 30) for server in servers]
    subjects = [delivery.content["subject"] for delivery in receivers.taken["webhook"]]
    assert sorted(subjects, key=int) == [str(at) for at in range(number)]
    assert codes == [0, 0]
