"""Live diagnostics over HTTP for admins, and the watchdog (C13). SIGQUIT is in test_processes."""

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
from systems.tests.pulse.client import ADMIN, client
from systems.tests.pulse.support import at_work, at_work_in_real_time, put, seen
from tests.support.waiting import until

from perdure.testing import Sandbox
from perdure_systems.pulse import jobs
from perdure_systems.pulse.documents import split
from perdure_systems.pulse.jobs import app
from perdure_systems.pulse.log_lines import reports
from perdure_systems.pulse.standins import ModelStandin

AT = "/api/pulse/diagnostics"
PATHS = [f"{AT}/stacks", f"{AT}/heap", f"{AT}/profile?seconds=0.1", f"{AT}/locks?seconds=0.1", f"{AT}/watchdog"]


@pytest.fixture(autouse=True)
def _admin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULSE_ADMIN_TOKEN", "secret")
    reports.clear()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("engine_url", ["sqlite"], indirect=True)
async def test_c13_diagnostics_are_always_on_and_for_admins_only(
    box: Sandbox, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    async with client() as http:
        assert (await http.get(path, headers=ADMIN)).status_code == 200
        assert (await http.get(path)).status_code == 401
        assert (await http.get(path, headers={"Authorization": "Bearer guess"})).status_code == 403
        monkeypatch.setenv("PULSE_ADMIN_TOKEN", "")
        refused = await http.get(path, headers={"Authorization": "Bearer "})
        assert (refused.status_code, "PULSE_ADMIN_TOKEN" in refused.json()["detail"]) == (403, True)
    del box


@pytest.mark.parametrize("engine_url", ["sqlite"], indirect=True)
async def test_c13_stacks_show_every_thread_and_task_and_what_each_waits_for(
    box: Sandbox, standin: ModelStandin
) -> None:
    standin.open.clear()
    submitted = await put(1)
    async with at_work() as worker, client([worker]) as http:
        await until(lambda: len(standin.asked) == 1)
        shown = (await http.get(f"{AT}/stacks", headers=ADMIN)).json()
        words = (await http.get(f"{AT}/stacks?format=text", headers=ADMIN)).text
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
    assert f"runs job {task['attempt']['job_id']} kind pulse.analyse" in words
    del box


def burn(stop: threading.Event) -> None:
    while not stop.is_set():
        sum(number * number for number in range(1_000))


@pytest.mark.parametrize("engine_url", ["sqlite"], indirect=True)
async def test_c13_a_cpu_profile_of_n_seconds_names_who_works_and_not_who_waits(box: Sandbox) -> None:
    stop = threading.Event()
    working, waiting = threading.Thread(target=burn, args=(stop,)), threading.Thread(target=stop.wait)
    working.start()
    waiting.start()
    try:
        async with client() as http:
            began = time.monotonic()
            shown = (await http.get(f"{AT}/profile?seconds=0.5", headers=ADMIN)).json()
            assert time.monotonic() - began >= 0.5
    finally:
        stop.set()
        working.join()
        waiting.join()
    busiest = sum(place["amount"] for place in shown["stacks"] if "burn" in place["where"])
    assert busiest > shown["cpu_seconds"] / 2
    assert shown["cpu_seconds"] > 0.05
    assert shown["samples"] >= 10
    del box


@pytest.mark.parametrize("engine_url", ["sqlite"], indirect=True)
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
        async with client() as http:
            shown = (await http.get(f"{AT}/locks?seconds=0.3", headers=ADMIN)).json()
    finally:
        lock.release()
        task_lock.release()
        thread.join()
        await task
    [place] = [place for place in shown["process"]["threads"] if "wait_for_lock" in place["where"]]
    assert 0.1 < place["amount"] < 1
    assert any("wait_for_task_lock" in place["where"] for place in shown["process"]["tasks"])
    assert shown["database"]["engine"] == "sqlite"
    assert shown["database"]["write_lock_seconds"] < 1
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


@pytest.mark.slow
async def test_c13_lock_contention_of_the_database_is_told(box: Sandbox, engine_url: str) -> None:
    is_sqlite = engine_url.startswith("sqlite")
    desk = await app.desk("test")
    async with client() as http:
        with locked(engine_url):
            waiting = asyncio.create_task(desk.requeue([]) if is_sqlite else desk.jobs())
            asking = asyncio.create_task(http.get(f"{AT}/locks?seconds=0.3", headers=ADMIN))
            await asyncio.sleep(0.6) if is_sqlite else await asking
        shown = (await asking).json()["database"]
        await asyncio.gather(waiting, return_exceptions=True)
    if is_sqlite:
        assert shown["write_lock_seconds"] > 0.1, "how long a writer had to wait"
    else:
        assert [waits["wait_event"] for waits in shown["waiting"]] == ["relation"]
        assert int(shown["waiting"][0]["blocked_by"]) > 0
    del box


@pytest.mark.parametrize("engine_url", ["sqlite"], indirect=True)
async def test_c13_the_heap_is_told_by_type_and_by_the_place_at_which_it_grows(box: Sandbox) -> None:
    hoard: list[bytes] = []

    async def grow() -> None:
        while True:
            hoard.append(bytes(100_000))
            await asyncio.sleep(0.01)

    growing = asyncio.create_task(grow())
    async with client() as http:
        shown = (await http.get(f"{AT}/heap?seconds=0.3", headers=ADMIN)).json()
    growing.cancel()
    assert "test_diagnostics.py" in shown["grown"][0]["where"]
    assert shown["grown"][0]["amount"] > 100_000
    assert {"dict", "function", "tuple"} <= {place["where"] for place in shown["types"]}
    assert 10_000 < shown["resident_kib"] <= shown["peak_kib"] * 1.1
    del box


@pytest.mark.parametrize("engine_url", ["sqlite"], indirect=True)
async def test_c13_seconds_that_cannot_be_meant_are_refused_by_name(box: Sandbox) -> None:
    async with client() as http:
        for value in ("61", "-1", "soon", "nan"):
            refused = await http.get(f"{AT}/profile?seconds={value}", headers=ADMIN)
            assert (refused.status_code, refused.json()["field"]) == (400, "seconds")
    del box


@pytest.mark.parametrize("engine_url", ["sqlite"], indirect=True)
async def test_c13_the_watchdog_reports_a_blocked_event_loop_with_the_stack(
    box: Sandbox, engine_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Splitting a document takes long and blocks every other job of the process."""

    def split_slowly(body: str, most: int) -> list[str]:
        time.sleep(0.8)
        return split(body, most)

    monkeypatch.setattr(jobs, "split", split_slowly)
    submitted = await put(1)
    async with at_work_in_real_time(engine_url, PULSE_BLOCKED_AFTER="200ms") as worker, client([worker]) as http:
        await seen(submitted.job_id)
        shown = (await http.get(f"{AT}/watchdog", headers=ADMIN)).json()
    blocked = [report for report in shown if report["what"] == "event loop blocked"]
    assert blocked[0]["seconds"] >= 0.2
    assert f"job {submitted.job_id} kind pulse.ingest" in blocked[0]["stack"]
    assert "time.sleep(0.8)" in blocked[0]["stack"]
    del box


@pytest.mark.slow
async def test_c13_the_watchdog_reports_a_blocked_store_with_the_stack(box: Sandbox, engine_url: str) -> None:
    async with at_work_in_real_time(engine_url, PULSE_SLOW_STORE_AFTER="200ms", PULSE_POLLING="fixed"):
        with locked(engine_url):
            await until(lambda: [report for report in reports if report.what == "database call is slow"])
    [first, *_] = [report for report in reports if report.what == "database call is slow"]
    assert first.seconds >= 0.2
    assert "claim" in first.stack
    del box
