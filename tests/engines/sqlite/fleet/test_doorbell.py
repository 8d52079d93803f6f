"""The doorbell: other connections' commits are noticed, and idle ones wake no listener."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import apsw
import pytest
from tests.support.builders.jobs import a_job, claim_one, claim_some, employ, enqueue
from tests.support.waiting import until

from perdure.domain.jobs import transition
from perdure.domain.operate.audit import By
from perdure.engines.sqlite.database.drivers import Connection, Params, Row
from perdure.engines.sqlite.fleet import doorbell, inotify, signals
from perdure.engines.sqlite.store import SqliteStore
from perdure.errors import StoreUnavailable
from perdure.storage.records import JobFilter

SOON = 10.0


@pytest.fixture(params=["inotify", "polling"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    def watch(_: str) -> int:
        raise OSError("this system has no inotify")

    if request.param == "polling":
        monkeypatch.setattr(inotify, "watch", watch)
    return str(request.param)


def write_to(log: str) -> None:
    with Path(log).open("ab") as opened:
        opened.write(b"\0")


async def heard(items: AsyncIterator[None]) -> None:
    await asyncio.wait_for(anext(items), SOON)


async def is_quiet(items: AsyncIterator[None], listener: SqliteStore, sender: SqliteStore) -> bool:
    """Nothing was heard of what went before: the next item is the one for a job that is brought now."""
    waiting = asyncio.ensure_future(anext(items))
    for _ in range(20):
        await asyncio.sleep(0.005)
    quiet = not waiting.done()
    await sender.insert([a_job()])
    await asyncio.wait_for(waiting, SOON)
    return quiet


async def sibling_of(store: SqliteStore) -> SqliteStore:
    sibling = store.sibling()
    await sibling.open()
    return sibling


async def test_work_of_another_store_is_heard(sqlite: SqliteStore, way: str) -> None:
    other = await sibling_of(sqlite)
    async with sqlite.wakeups() as items:
        for _ in range(5):
            await other.insert([a_job()])
            await heard(items)
    await other.close()


async def test_work_brought_by_the_apps_own_connection_is_heard(sqlite: SqliteStore, path: str, way: str) -> None:
    """No perdure code runs at its commit: only the log tells."""
    await enqueue(sqlite)
    app = apsw.Connection(path)
    async with sqlite.wakeups() as items:
        app.execute("BEGIN IMMEDIATE")
        app.execute("UPDATE perdure_ready SET since = since + 1")
        app.execute("COMMIT")
        await heard(items)
    app.close()


class Glimpses:
    """A connection that sees, look by look, how many commits there are; there is always work."""

    def __init__(self, *seen: int) -> None:
        self._seen = list(seen)

    def run(self, sql: str, params: Params = ()) -> list[Row]:
        del params
        if "data_version" not in sql:
            return [(1,)]
        return [(self._seen.pop(0) if len(self._seen) > 1 else self._seen[0],)]


async def test_a_commit_that_shows_only_after_the_one_before_it_is_heard(sqlite: SqliteStore) -> None:
    """Two are written; a look sees the first of them, while the other is still being flushed."""
    event = asyncio.Event()
    glimpses = cast("Connection", Glimpses(0, 1, 1, 2))
    bell = doorbell.Doorbell(sqlite._database, glimpses, event)
    write_to(sqlite._database.log)
    for _ in range(2):
        await asyncio.wait_for(event.wait(), SOON)
        event.clear()
    bell.close()


async def test_a_write_is_looked_at_soon_although_nothing_came_of_the_one_before(
    sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pauses have grown long by then."""
    looks: list[None] = []
    monkeypatch.setattr(doorbell, "_PAUSES_SECONDS", (0.001, 60.0))
    bell = doorbell.Doorbell(sqlite._database, cast("Connection", Glimpses(0)), asyncio.Event())
    monkeypatch.setattr(bell, "_look", lambda: looks.append(None))
    for _ in range(3):
        write_to(sqlite._database.log)
        await until(lambda: len(looks) == 2, SOON)  # opening it makes one, and the write another
        looks.clear()
    bell.close()


async def test_single_enqueues_that_follow_each_other_closely_are_all_heard(sqlite: SqliteStore) -> None:
    """On the short way, where most of them do not ring."""
    other = await sibling_of(sqlite)
    for _ in range(60):
        await other.insert([a_job()])
    worker_id = await employ(sqlite)
    heard_of = len(await claim_some(sqlite, worker_id, 100))
    async with sqlite.wakeups() as items:
        for burst in range(10):
            for _ in range(6):
                await other.insert([a_job()])
            while heard_of < 60 + 6 * (burst + 1):
                await heard(items)
                heard_of += len(await claim_some(sqlite, worker_id, 100))
    await other.close()


async def test_a_request_to_cancel_is_heard(sqlite: SqliteStore, way: str) -> None:
    await enqueue(sqlite)
    claim = await claim_one(sqlite, await employ(sqlite))
    other = await sibling_of(sqlite)
    async with sqlite.wakeups() as items:
        assert await other.cancel(JobFilter(), By("ops", "no need"), 1) == [claim.job_id]
        await heard(items)
    await other.close()


async def test_commits_that_leave_nothing_to_do_wake_no_worker(sqlite: SqliteStore, way: str) -> None:
    """Heartbeats, claims and acknowledgements of others are not for us."""
    other = await sibling_of(sqlite)
    worker_id = await employ(other)
    await other.insert([a_job(), a_job()])
    async with sqlite.wakeups() as items:
        claims = await claim_some(other, worker_id)
        await other.acknowledge([transition.succeeded(claim, None, ()) for claim in claims])
        await other.beat(worker_id)
        assert await is_quiet(items, sqlite, other)
    await other.close()


async def test_a_listener_that_could_not_begin_leaves_nothing_behind(
    sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Connection] = []
    connect = sqlite._database.connect_to_look

    def connect_to_look() -> Connection:
        opened.append(connect())
        return opened[-1]

    def refuse(*_: object) -> None:
        raise StoreUnavailable("not now")

    with monkeypatch.context() as patch:
        patch.setattr(sqlite._database, "connect_to_look", connect_to_look)
        patch.setattr(signals, "Doorbell", refuse)
        with pytest.raises(StoreUnavailable):
            async with sqlite.wakeups():
                pass
    assert sqlite._database._listeners == []
    with pytest.raises(apsw.ConnectionClosedError):
        opened[0].raw.in_transaction  # noqa: B018 - even a look at it is refused


async def test_a_store_hears_its_own_work(sqlite: SqliteStore) -> None:
    async with sqlite.wakeups() as items:
        await enqueue(sqlite)
        await heard(items)
