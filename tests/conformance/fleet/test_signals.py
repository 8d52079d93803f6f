"""SignalStore: wake-ups are hints that come soon."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from typing import Final

import pytest
from tests.conftest import OpenStore
from tests.support.builders.jobs import enqueue, start
from tests.support.crew import SIZE, Crew, Ready
from tests.support.databases.behind import query

from perdure.app.connect import store_for
from perdure.domain.jobs.ids import new_job_id
from perdure.domain.jobs.transition import succeeded
from perdure.storage.port import Store

SOON: Final = 10.0  # seconds; a hint takes milliseconds, a busy machine takes its time


async def next_item(items: AsyncIterator[None]) -> None:
    await asyncio.wait_for(anext(items), SOON)


async def bring_work(store: Store) -> None:
    """Hand in a job and tell the workers, as whoever enqueues does."""
    await enqueue(store)
    store.ring(["default"])


async def test_a_ring_wakes_a_listener_of_the_same_store(real_time_store: Store) -> None:
    async with real_time_store.wakeups() as items:
        real_time_store.ring(["default"])
        await next_item(items)


async def test_a_ring_wakes_every_listener_of_every_store(store: Store, other_store: OpenStore) -> None:
    async with AsyncExitStack() as stack:
        listeners = [
            await stack.enter_async_context(one.wakeups()) for one in (store, await other_store(), await other_store())
        ]
        for _ in range(3):
            await bring_work(store)
            await asyncio.gather(*(next_item(items) for items in listeners))


async def test_items_that_pile_up_are_one(store: Store, other_store: OpenStore) -> None:
    """A listener that was busy looks once, perhaps once more for a late echo, but not a hundred times."""
    listener = await other_store()
    async with listener.wakeups() as items:
        for _ in range(100):
            await bring_work(store)
        await next_item(items)
        more = asyncio.create_task(count_until_cancelled(items))
        await asyncio.wait({more}, timeout=0.3)
        more.cancel()
        assert await more < 10


async def count_until_cancelled(items: AsyncIterator[None]) -> int:
    heard = 0
    with suppress(asyncio.CancelledError):
        async for _ in items:
            heard += 1
    return heard


async def test_ringing_is_never_an_error_and_never_waits(store: Store) -> None:
    store.ring([])
    for queue in ("nobody listens", "it's '; DROP", "🦩", "x" * 20_000):
        store.ring([queue])
    async with store.wakeups() as items:
        store.ring(["default"])
        await next_item(items)


async def test_a_listener_may_go_while_others_stay(store: Store, other_store: OpenStore) -> None:
    staying = await other_store()
    async with staying.wakeups() as items:
        for _ in range(3):
            async with store.wakeups():
                pass
        await bring_work(store)
        await next_item(items)


async def test_a_listener_that_is_cancelled_lets_its_store_close(other_store: OpenStore) -> None:
    going = await other_store()
    listening = asyncio.Event()

    async def listen() -> None:
        async with going.wakeups() as items:
            listening.set()
            async for _ in items:
                pass

    listener = asyncio.create_task(listen())
    await asyncio.wait_for(listening.wait(), SOON)
    listener.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(listener, SOON)
    await asyncio.wait_for(going.close(), SOON)


async def test_a_lost_connection_is_mended_quietly(store: Store, engine_url: str, other_store: OpenStore) -> None:
    if engine_url.startswith("sqlite"):
        pytest.skip("a file has no connection to lose")
    if "PERDURE_TEST_POSTGRES" in os.environ:
        pytest.skip("cuts every connection, which only a server of our own may suffer")
    async with store.wakeups() as items:
        other = await other_store()
        query(engine_url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        heard = asyncio.create_task(next_item(items))
        while not heard.done():
            await bring_work(other)
            await asyncio.wait({heard}, timeout=0.05)
        await heard


async def test_work_brought_by_one_process_wakes_the_others(
    real_time_store: Store, engine_url: str, crew: Crew
) -> None:
    await asyncio.to_thread(crew.together, bring_or_hear, [(engine_url, number == 0) for number in range(SIZE)])


def bring_or_hear(ready: Ready, url: str, bring: bool) -> None:
    """One process brings work once all the others listen; they come back when they have heard of it."""

    async def take_part() -> None:
        store = store_for(url)
        await store.open()
        try:
            async with store.wakeups() as items:
                await asyncio.to_thread(ready)
                if bring:
                    await bring_work(store)
                await next_item(items)
        finally:
            await store.close()

    asyncio.run(take_part())


async def test_the_end_of_an_awaited_job_rings_in_another_store(store: Store, other_store: OpenStore) -> None:
    """A worker's store hears what is awaited while it listens for work; then it rings for that job."""
    claim = await start(store)
    caller = await other_store()
    async with store.wakeups(), caller.ends() as ends:
        hearing = asyncio.create_task(next_item(ends))
        caller.await_ends([claim.job_id])
        await store.acknowledge([succeeded(claim, None, ())])
        while not hearing.done():  # the word that it is awaited is on its way for a moment
            store.ring_ended([claim.job_id])
            await asyncio.sleep(0.01)
        await hearing


async def test_an_awaited_end_in_the_same_store_rings_too(store: Store) -> None:
    claim = await start(store)
    async with store.ends() as ends:
        store.await_ends([claim.job_id])
        await store.acknowledge([succeeded(claim, None, ())])
        store.ring_ended([claim.job_id])
        await next_item(ends)


async def test_awaiting_and_ringing_for_ends_are_never_an_error(store: Store) -> None:
    store.ring_ended([])
    store.await_ends([])
    store.ring_ended([new_job_id()])
    store.await_ends([new_job_id() for _ in range(20_000)])
    store.ring_ended([new_job_id()])
    async with store.ends() as ends:
        claim = await start(store)
        store.await_ends([claim.job_id])
        await store.acknowledge([succeeded(claim, None, ())])
        store.ring_ended([claim.job_id])
        await next_item(ends)
