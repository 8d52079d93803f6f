"""ThrottleStore: at most once in a period, across all callers (E9: an alert at most once an hour per audit)."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from tests.conftest import OpenStore
from tests.support.builders.jobs import HOSTILE, HOUR, INSTANT, MINUTE, SECOND
from tests.support.crew import SIZE, Crew, Ready
from tests.support.databases.behind import query

from perdure.app.connect import store_for
from perdure.clock import ManualClock
from perdure.storage.port import Store

ROUNDS = 20


async def test_e9_the_first_takes_it_and_the_others_wait_for_the_end_of_the_period(
    store: Store, clock: ManualClock
) -> None:
    assert await store.once_per("alert:1", HOUR, "a")
    clock.move(HOUR - INSTANT)
    assert not await store.once_per("alert:1", HOUR, "b")
    clock.move(INSTANT)
    assert await store.once_per("alert:1", HOUR, "b")
    assert not await store.once_per("alert:1", HOUR, "a")


async def test_keys_do_not_concern_each_other(store: Store) -> None:
    taken = [await store.once_per(key, HOUR, "a") for key in ("alert:1", "alert:2", *HOSTILE)]
    assert all(taken)
    assert not any([await store.once_per(key, HOUR, "b") for key in ("alert:1", "alert:2", *HOSTILE)])


async def test_the_same_caller_gets_the_same_answer_and_no_longer_period(store: Store, clock: ManualClock) -> None:
    """An answer that was lost on its way may be asked for again."""
    for _ in range(3):
        assert await store.once_per("alert:1", MINUTE, "a")
        clock.move(20 * SECOND)
    assert await store.once_per("alert:1", MINUTE, "b")


async def test_the_period_is_that_of_the_caller_who_has_it(store: Store, clock: ManualClock) -> None:
    assert await store.once_per("alert:1", MINUTE, "a")
    clock.move(MINUTE)
    assert await store.once_per("alert:1", HOUR, "b")
    clock.move(MINUTE)
    assert not await store.once_per("alert:1", MINUTE, "c")


async def test_a_clock_that_is_put_back_does_not_silence_it(store: Store, clock: ManualClock) -> None:
    clock.move(HOUR)
    assert await store.once_per("alert:1", MINUTE, "a")
    clock.move(-HOUR)
    assert await store.once_per("alert:1", MINUTE, "b")


async def test_it_is_kept_over_restarts_and_for_every_store(store: Store, other_store: OpenStore) -> None:
    assert await store.once_per("alert:1", HOUR, "a")
    assert not await (await other_store()).once_per("alert:1", HOUR, "b")


async def test_keys_whose_period_is_over_are_deleted_in_passing(
    store: Store, engine_url: str, clock: ManualClock
) -> None:
    for number in range(30):
        await store.once_per(f"alert:{number}", SECOND, "a")
    clock.move(MINUTE)
    for number in range(100, 103):
        assert await store.once_per(f"alert:{number}", HOUR, "a")
    assert sorted(key for (key,) in query(engine_url, "SELECT key FROM {throttle}")) == [
        "alert:100",
        "alert:101",
        "alert:102",
    ]


async def test_of_many_tasks_at_once_one_wins(store: Store, other_store: OpenStore) -> None:
    stores = [store, await other_store(), await other_store()]
    for number in range(ROUNDS):
        asking = [each.once_per(f"alert:{number}", HOUR, f"{n}") for n, each in enumerate(stores * 5)]
        assert sum(await asyncio.gather(*asking)) == 1


async def test_of_many_processes_at_once_one_wins(real_time_store: Store, engine_url: str, crew: Crew) -> None:
    won = await asyncio.to_thread(crew.together, take_all, [(engine_url, f"p{number}") for number in range(SIZE)])
    assert [sum(taken) for taken in zip(*won, strict=True)] == [1] * ROUNDS


def take_all(ready: Ready, url: str, caller: str) -> list[bool]:
    """In a process of the crew: ask for every key, as fast as can be."""

    async def ask() -> list[bool]:
        store = store_for(url)
        await store.open()
        try:
            ready()
            return [await store.once_per(f"race:{number}", timedelta(hours=1), caller) for number in range(ROUNDS)]
        finally:
            await store.close()

    return asyncio.run(ask())


@pytest.mark.parametrize("period", [timedelta(microseconds=1), timedelta(days=36_500)])
async def test_any_period_can_be_kept(store: Store, clock: ManualClock, period: timedelta) -> None:
    assert await store.once_per("alert:1", period, "a")
    assert not await store.once_per("alert:1", period, "b")
    clock.move(min(period, timedelta(days=1)))
    assert await store.once_per("alert:1", period, "c") == (period < timedelta(days=1))
