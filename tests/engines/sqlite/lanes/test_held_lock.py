"""Behind a lock that another process holds, every caller waits 30 s: not longer, and not less."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import apsw
import pytest
from tests.support.builders.jobs import a_job
from tests.support.waiting import PATIENCE

from perdure import App, OnConflict, StoreLocked, Unique
from perdure.engines.sqlite.database.faults import StoreBusy
from perdure.engines.sqlite.lanes import lane, writer
from perdure.engines.sqlite.lanes import lock_waits as patience
from perdure.engines.sqlite.lanes.lane import Request
from perdure.engines.sqlite.store import SqliteStore

STEP = 0.5


class Time:
    """Time that passes only while a thread waits for the lock; something may happen at an instant of it."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._plan: list[tuple[float, Callable[[], None]]] = []

    def at(self, after: float, act: Callable[[], None]) -> None:
        """Do this once so many seconds have passed, on the running loop, while the thread waits for it.

        A task that it makes has taken its first step by then.
        """
        loop = asyncio.get_running_loop()

        def there() -> None:
            over = threading.Event()
            loop.call_soon_threadsafe(act)
            loop.call_soon_threadsafe(loop.call_soon, over.set)
            assert over.wait(PATIENCE)

        self._plan.append((self.now + after, there))

    def monotonic(self) -> float:
        return self.now

    def sleep(self, _seconds: float) -> None:
        self.now += STEP
        while self._plan and self._plan[0][0] <= self.now:
            self._plan.pop(0)[1]()


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    for module in (lane, patience, writer):
        monkeypatch.setattr(module, "time", time)
    return time


@pytest.fixture
def lock(sqlite: SqliteStore, path: str) -> Iterator[apsw.Connection]:
    """Held by another connection until it is closed."""
    other = apsw.Connection(path)
    other.execute("BEGIN IMMEDIATE")
    yield other
    other.close()


async def test_an_enqueue_waits_half_a_minute(
    sqlite: SqliteStore, lock: apsw.Connection, path: str, time: Time
) -> None:
    async with App(f"sqlite:///{path}", migrate=False) as app:

        @app.job
        async def greet() -> None: ...

        begun = time.now
        with pytest.raises(StoreLocked, match="waited 30 s; look for a process") as failure:
            await greet.enqueue()
        assert 30 <= time.now - begun <= 31  # a second more behind a batch that is stuck
        assert "unknown" not in str(failure.value)
        begun = time.now
        with pytest.raises(StoreLocked, match="waited 30 s"):
            await app.enqueue_many([greet.call(), greet.call()])
        assert 30 <= time.now - begun <= 31  # a second more behind a batch that is stuck
        begun = time.now
        with pytest.raises(StoreLocked, match="waited 30 s"):
            await asyncio.to_thread(greet.enqueue_sync)
        assert 30 <= time.now - begun <= 31  # a second more behind a batch that is stuck
        lock.execute("ROLLBACK")
        assert (await greet.enqueue()).is_new


async def test_enqueues_that_come_together_are_refused_together(
    sqlite: SqliteStore, lock: apsw.Connection, path: str, time: Time
) -> None:
    """Also those that are stored one by one, as they may be refused by their key."""
    async with App(f"sqlite:///{path}", migrate=False) as app:

        @app.job(unique=Unique(on_conflict=OnConflict.REJECT))
        async def rejecting(number: int) -> None: ...

        @app.job
        async def plain(number: int) -> None: ...

        begun = time.now
        calls = [job.enqueue(number) for number in range(3) for job in (rejecting, plain)]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [StoreLocked] * 6
        assert 30 <= time.now - begun <= 31  # a second more behind a batch that is stuck


async def test_each_write_waits_from_when_it_was_handed_in(
    sqlite: SqliteStore, lock: apsw.Connection, time: Time
) -> None:
    """One that comes while the writer waits for another has its own half minute, and no more."""
    ends: dict[str, float] = {}
    begun = time.now
    tasks: list[asyncio.Task[Any]] = []
    released = asyncio.Event()

    def release() -> None:
        lock.execute("ROLLBACK")
        released.set()

    def write(name: str) -> None:
        async def written() -> None:
            try:
                await sqlite.insert([a_job()])
            except StoreLocked:
                ends[name] = time.now - begun

        tasks.append(asyncio.ensure_future(written()))

    time.at(10, lambda: write("second"))
    time.at(20, lambda: write("third"))
    time.at(45, release)
    write("first")
    await asyncio.wait_for(released.wait(), PATIENCE)
    await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE)
    assert ends.keys() == {"first", "second"}  # the third had the lock in time
    assert ends["first"] >= 30
    assert ends["second"] >= 40


async def test_a_long_queue_alone_makes_no_write_time_out(sqlite: SqliteStore, time: Time) -> None:
    """What has waited for others, and not for the lock, has half a minute from when the lock is first found held."""
    lane = sqlite._database._writer
    assert lane is not None
    answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    operation = Request(lambda _: None, answered)
    operation.put_at = time.now - 100
    assert lane._patient([operation], StoreBusy("held")) == [operation]
    time.now += 29
    assert lane._patient([operation], StoreBusy("held")) == [operation]
    time.now += 1
    assert lane._patient([operation], StoreBusy("held")) == []
    with pytest.raises(StoreLocked, match="held: waited 30 s"):
        await asyncio.wait_for(answered, PATIENCE)
    lane._under_way += 1  # it was never handed in


async def test_a_handlers_transaction_waits_half_a_minute(
    sqlite: SqliteStore, lock: apsw.Connection, time: Time
) -> None:
    begun = time.now
    with pytest.raises(StoreLocked, match="waited 30 s"):
        await sqlite.begin_effects(blocking=True)
    assert 30 <= time.now - begun <= 31  # a second more behind a batch that is stuck
