"""Live diagnostics over HTTP for admins, and the watchdog (C13): those of the engine. SIGQUIT is in test_processes."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qsl, urlencode, urlsplit

import apsw
import psycopg
import pytest
from systems.tests.pulse.client import desk_client
from systems.tests.pulse.support import SQLITE, at_work, at_work_in_real_time, put, seen
from tests.support.waiting import until

from perdure import Event
from perdure.events import StoreSlow
from perdure.testing import Sandbox
from perdure_systems.pulse import jobs
from perdure_systems.pulse.documents import split
from perdure_systems.pulse.jobs import app
from perdure_systems.pulse.standins import ModelStandin

AT = "/desk/api/v1/diagnostics"
PATHS = [f"{AT}/stacks", f"{AT}/heap", f"{AT}/profile?seconds=0.1", f"{AT}/locks?seconds=0.1", f"{AT}/contention"]


@SQLITE
async def test_c13_diagnostics_are_always_on_and_for_admins_only(box: Sandbox) -> None:
    """Callers on this machine are admins; others need a token of that scope."""
    desk = await app.desk("test")
    secrets = {scope: (await desk.create_token(scope, scope))[1] for scope in ("operate", "admin")}
    codes = {"": 401, "Bearer guess": 401, f"Bearer {secrets['operate']}": 403, f"Bearer {secrets['admin']}": 200}
    async with desk_client() as here:
        assert [(await here.get(path)).status_code for path in PATHS] == [200] * len(PATHS)
    async with desk_client(caller="203.0.113.7") as other:
        for token, code in codes.items():
            headers = {"Authorization": token} if token else {}
            assert [(await other.get(path, headers=headers)).status_code for path in PATHS] == [code] * len(PATHS)
    del box


@SQLITE
async def test_c13_stacks_show_every_thread_and_task_and_what_each_waits_for(
    box: Sandbox, standin: ModelStandin
) -> None:
    standin.open.clear()
    submitted = await put(1)
    async with at_work() as worker, desk_client([worker]) as http:
        await until(lambda: len(standin.asked) == 1)
        shown = (await http.get(f"{AT}/stacks")).json()
        standin.open.set()
        await seen(submitted.job_id)
    [task] = [task for task in shown["tasks"] if task["attempt"] is not None]
    assert task["attempt"]["kind"] == "pulse.analyse"
    assert [frame["function"] for frame in task["frames"] if frame["file"].endswith("pulse/model.py")] == [
        "ask",
        "_post",
    ]
    assert "not done" in task["awaits"], "what it waits for"
    assert "MainThread" in {thread["name"] for thread in shown["threads"]}
    del box


def burn(stop: threading.Event) -> None:
    while not stop.is_set():
        sum(number * number for number in range(1_000))


@SQLITE
async def test_c13_a_cpu_profile_of_n_seconds_names_who_works_and_not_who_waits(box: Sandbox) -> None:
    stop = threading.Event()
    working, waiting = threading.Thread(target=burn, args=(stop,)), threading.Thread(target=stop.wait)
    working.start()
    waiting.start()
    try:
        async with desk_client() as http:
            began = time.monotonic()
            shown = (await http.get(f"{AT}/profile?seconds=0.5")).json()
            assert time.monotonic() - began >= 0.5
    finally:
        stop.set()
        working.join()
        waiting.join()
    names = [one["function"] for one in shown["functions"]]
    assert "burn" in names
    assert "Event.wait" not in names
    assert shown["idle"] > 0
    del box


@SQLITE
async def test_c13_lock_contention_names_the_place_at_which_threads_and_tasks_wait(box: Sandbox) -> None:
    lock, task_lock = threading.Lock(), asyncio.Lock()

    def wait_for_lock() -> None:
        with lock:
            pass

    async def wait_for_task_lock() -> None:
        async with task_lock:
            pass

    lock.acquire()
    await task_lock.acquire()
    thread = threading.Thread(target=wait_for_lock)
    thread.start()
    task = asyncio.create_task(wait_for_task_lock())
    try:
        async with desk_client() as http:
            shown = (await http.get(f"{AT}/locks?seconds=0.3")).json()
    finally:
        lock.release()
        task_lock.release()
        thread.join()
        await task
    [place] = [place for place in shown["threads"] if "wait_for_lock" in place["where"]]
    assert place["seconds"] > 0.1
    assert any("wait_for_task_lock" in place["where"] for place in shown["tasks"])
    del box


@contextmanager
def locked(url: str) -> Iterator[None]:
    """Keep the jobs of a database locked: no worker can claim."""
    if url.startswith("sqlite"):
        connection = apsw.Connection(urlsplit(url).path[1:])
        connection.set_busy_timeout(30_000)
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            connection.execute("ROLLBACK")
            connection.close()
        return
    options = {name: value for name, value in parse_qsl(urlsplit(url).query) if name != "schema"}
    with psycopg.connect(f"{url.partition('?')[0]}?{urlencode(options)}") as connected:
        connected.execute("LOCK TABLE perdure.job IN ACCESS EXCLUSIVE MODE")
        yield


@SQLITE
async def test_c13_the_heap_is_reported_by_type(box: Sandbox) -> None:
    class Hoarded:
        """What takes the memory here."""

    hoard = [Hoarded() for _ in range(5_000)]
    async with desk_client() as http:
        shown = (await http.get(f"{AT}/heap?limit=500")).json()
    counts = {entry["what"]: entry["count"] for entry in shown["entries"]}
    assert len(hoard) == next(count for what, count in counts.items() if what.endswith("Hoarded"))
    assert shown["resident"] > 10_000_000
    del box


@SQLITE
async def test_c13_the_watchdog_reports_a_blocked_event_loop_with_the_stack(
    box: Sandbox, engine_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Splitting a document takes long and blocks every other job of the process."""

    def split_slowly(body: str, most: int) -> list[str]:
        time.sleep(0.8)
        return split(body, most)

    monkeypatch.setattr(jobs, "split", split_slowly)
    submitted = await put(1)
    async with (
        desk_client() as http,
        at_work_in_real_time(engine_url, PULSE_BLOCKED_AFTER="200ms"),
    ):
        await seen(submitted.job_id)
        shown = (await http.get(f"{AT}/contention")).json()
    [blocked, *_] = [one for one in reversed(shown["incidents"]) if one["event"] == "EventLoopBlocked"]
    assert blocked["seconds"] >= 0.2
    assert f"job {submitted.job_id} kind pulse.ingest" in blocked["stack"]
    assert "time.sleep(0.8)" in blocked["stack"]
    del box


@pytest.mark.slow
async def test_c13_the_watchdog_reports_a_blocked_store_with_the_stack(box: Sandbox, engine_url: str) -> None:
    async with (
        desk_client() as http,
        at_work_in_real_time(engine_url, PULSE_SLOW_STORE_AFTER="200ms", PULSE_POLLING="fixed"),
    ):
        slow: list[Event] = []
        forget = app.subscribe(slow.append, StoreSlow)
        with locked(engine_url):
            await until(lambda: bool(slow))
        forget()
        shown = (await http.get(f"{AT}/contention")).json()
    [*_, first] = [one for one in shown["incidents"] if one["event"] == "StoreSlow"]
    assert first["seconds"] >= 0.2
    assert "claim" in first["stack"]
    del box
