"""A failover to a standby that has not heard of the last commits, with real servers (G2, G3)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.support.builders.gates import costs, some, standing
from tests.support.builders.jobs import claim_one, employ, enqueue, state_of
from tests.support.databases.behind import query
from tests.support.databases.databases import migrate
from tests.support.databases.postgres import PostgresServer, url_of
from tests.support.waiting import until
from tests.support.working import at_work, found

from perdure import App, Concurrency, Context, JobState, JobView
from perdure.app.connect import store_for
from perdure.domain.jobs import transition
from perdure.domain.jobs.job import Claim
from perdure.errors import StoreUnavailable
from perdure.events import LeasesReturned
from perdure.storage.port import Store
from perdure.storage.records import Acknowledged

pytestmark = pytest.mark.proof


class Pair:
    """A primary and its standby, at one address that leads to the one that serves."""

    def __init__(self, folder: Path) -> None:
        self.primary = PostgresServer(durable=True)
        migrate(self.primary.url)
        self.standby = PostgresServer(of=self.primary)
        self._socket = folder / "socket"
        self._lead_to(self.primary)
        self.url = url_of(self._socket)

    async def caught_up(self) -> None:
        """Wait until the standby knows of everything."""
        [[written]] = query(self.primary.url, "SELECT pg_current_wal_lsn()::text")
        behind = f"SELECT pg_last_wal_replay_lsn() < '{written}'::pg_lsn"
        await until(lambda: query(self.standby.url, behind) == [(False,)])

    def fail_over(self) -> None:
        """Kill the primary and let the standby take over."""
        self.primary.kill()
        self.standby.promote()
        self._lead_to(self.standby)

    def discard(self) -> None:
        self.primary.discard()
        self.standby.discard()

    def _lead_to(self, server: PostgresServer) -> None:
        link = self._socket.with_suffix(".new")
        link.symlink_to(server.socket)
        link.rename(self._socket)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    pair = Pair(tmp_path)
    try:
        yield pair
    finally:
        pair.discard()


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    store = store_for(url)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def test_g2_a_worker_gives_back_what_stands_as_running_after_a_failover(pair: Pair) -> None:
    """The claims have reached the standby, their ends have not; the worker lives through it all."""
    app, go, ran = App("sqlite:///unused.db"), asyncio.Event(), Counter[str]()

    @app.job(gates=[Concurrency(20)])
    async def greet(ctx: Context, name: str) -> None:
        ran[ctx.job_id] += 1
        await go.wait()

    async with opened(pair.url) as store:
        await some(store, 20)
        async with at_work(store, app, concurrency=20, heartbeat="500ms", lease="30s") as shift:
            await until(lambda: len(ran) == 20)
            await pair.caught_up()
            await asyncio.to_thread(pair.standby.cut_off)
            go.set()
            await standing(store, succeeded=20)
            await asyncio.to_thread(pair.fail_over)
            done = await found(lambda: all_done(store))
    assert costs(done) == {(0, 0)}
    assert set(ran.values()) == {2}
    assert sorted(job for event in shift.told(LeasesReturned) for job in event.job_ids) == sorted(ran)
    assert query(pair.standby.url, "SELECT count(*) FROM perdure.lease") == [(0,)]


async def all_done(store: Store) -> list[JobView] | None:
    try:
        return await asyncio.wait_for(standing(store, succeeded=20), 1)
    except (StoreUnavailable, TimeoutError, AssertionError):
        return None


@pytest.mark.parametrize("by_itself", [False, True], ids=["by another worker", "by the same worker"])
async def test_g3_no_token_comes_twice_over_a_failover(pair: Pair, by_itself: bool) -> None:
    """A hundred claims that the standby has never heard of, and the job of the last is claimed again there."""
    async with opened(pair.url) as store, opened(pair.url) as other:
        first, second = await employ(store), await employ(store)
        job_id = await enqueue(store)
        await pair.caught_up()
        await asyncio.to_thread(pair.standby.cut_off)
        tokens = set()
        for _ in range(100):
            late = await claim_one(store, first)
            tokens.add(late.token)
            if len(tokens) < 100:
                await store.acknowledge([transition.released(late)])
        await asyncio.to_thread(pair.fail_over)

        async def claim_again() -> Claim | None:
            taker = (store, first) if by_itself else (other, second)
            try:
                return await claim_one(*taker)
            except (StoreUnavailable, ValueError):
                return None

        held = await found(claim_again)
        assert held.job_id == job_id
        assert held.token > max(tokens)
        assert await store.acknowledge([transition.succeeded(late, None, ())]) == Acknowledged(0, (late,))
        assert await state_of(store, job_id) is JobState.RUNNING
        assert await store.acknowledge([transition.succeeded(held, None, ())]) == Acknowledged(1)
