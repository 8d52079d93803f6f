"""Chains as an app makes them: long ones cost the same for each link, and wherever they are stopped they go on."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from tests.support.builders.jobs import HOUR, only
from tests.support.working import at_work, found, seen

from perdure import App, Chain, Handle, JobState, Permanent, Retry
from perdure.clock import ManualClock
from perdure.domain.operate.audit import By
from perdure.events import FamilySpawned
from perdure.storage.port import Store

LINKS = 300


class Counting:
    """A store that counts its calls, and the claims of chains."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.calls: Counter[str] = Counter()
        self.chains: list[int] = []  # how long the arguments were that a claim has read

    def __getattr__(self, name: str) -> Any:
        self.calls[name] += 1
        return getattr(self._store, name)

    async def claim(self, *given: Any) -> Any:
        claims = await self._store.claim(*given)
        self.chains += [len(claim.args) for claim in claims if claim.kind == "perdure.chain"]
        return claims


@pytest.fixture
async def app(engine_url: str, clock: ManualClock) -> Any:
    async with App(engine_url, clock=clock) as app:
        yield app


async def test_a_chain_comes_back_twice_however_long_it_is(app: App) -> None:
    """Once to make its first link and once to give the result; nothing is read for all links at once.

    (A first link that ends before the chain is parked brings it back once more.)
    """

    @app.job
    async def count(result: int = 0) -> int:
        return result + 1

    seen_by = {}
    for links in (3, LINKS):
        calls = (count.using(queue="later").call(), *(count.call() for _ in range(links - 1)))
        handle: Handle[int] = await Chain(calls).enqueue()
        store = await app.store()
        counting: Any = Counting(store)
        async with at_work(counting, app, queues=("default",)) as shift:
            await seen(store, handle.id, JobState.WAITING)
            async with at_work(store, app, queues=("later",)):
                assert (await seen(store, handle.id)).result == str(links)
        assert len(shift.told(FamilySpawned)) == 1
        seen_by[links] = counting
    short, long = seen_by[3], seen_by[LINKS]
    assert len(short.chains) == len(long.chains) == 2
    assert max(long.chains) < 10_000, "the links are not among the arguments"
    for name in ("planned", "children", "steps", "save_steps", "spawn"):
        assert short.calls[name] == long.calls[name], name


async def test_a_link_that_died_is_requeued_in_the_middle_of_a_long_chain(app: App) -> None:
    broken = {150}

    @app.job(retry=Retry(attempts=1))
    async def count(result: int = 0) -> int:
        if result in broken:
            raise Permanent("no further")
        return result + 1

    handle: Handle[int] = await Chain(tuple(count.call() for _ in range(LINKS))).enqueue()
    store = await app.store()
    async with at_work(store, app):
        assert (await seen(store, handle.id)).state is JobState.DEAD
        assert (await handle.view()).cursor == "150"
        broken.clear()
        [dead] = await store.children(handle.id, "stage#151")
        await store.requeue(only(dead.job_id), By("test"), 1)
        await seen(store, dead.job_id)
        await store.requeue(only(handle.id), By("test"), 1)
        assert await handle.result("30s") == LINKS


async def test_an_impatient_operator_does_not_make_a_link_twice(app: App) -> None:
    """A chain that is run although its link is not final waits on, and the engine goes on with it."""
    runs: list[int] = []

    @app.job
    async def count(result: int = 0) -> int:
        runs.append(result)
        return result + 1

    first = count.using(queue="later").call()
    handle = await (first | count.call() | count.call()).enqueue()
    store = await app.store()
    async with at_work(store, app, queues=("default",)):
        await seen(store, handle.id, JobState.WAITING)
        assert await store.run_now(only(handle.id), By("test"), 1) == [handle.id]
        await seen(store, handle.id, JobState.WAITING)
    async with at_work(store, app, queues=("default", "later")):
        assert await handle.result("30s") == 3
    assert runs == [0, 1, 2]


async def test_a_link_in_the_middle_is_made_with_its_delay(app: App, clock: ManualClock) -> None:
    @app.job
    async def count(result: int = 0) -> int:
        return result + 1

    handle = await (count.call() | count.using(delay="1h").call() | count.call()).enqueue()
    store = await app.store()
    async with at_work(store, app):
        [delayed] = await _children(store, handle.id, "stage#2")
        assert (await seen(store, delayed, JobState.SCHEDULED)).due_at is not None
        clock.move(HOUR)
        assert await handle.result("30s") == 3


async def _children(store: Store, parent: Any, key: str) -> list[Any]:
    async def look() -> list[Any] | None:
        return [child.job_id for child in await store.children(parent, key)] or None

    return await found(look)
