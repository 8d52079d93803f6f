"""The gate sweeper keeps the sums of budgets up with what is spent."""

from __future__ import annotations

from datetime import timedelta

from tests.support.builders.jobs import DAY, SECOND
from tests.support.builders.spends import Neighbour
from tests.support.databases.behind import query

from perdure.clock import ManualClock
from perdure.events import Emitter
from perdure.storage.port import Store
from perdure.upkeep.gate_sweeper import GateSweeper


async def test_it_sums_what_was_spent(store: Store, clock: ManualClock, engine_url: str) -> None:
    Neighbour(engine_url).add(clock.now(), 2)
    sweeper = GateSweeper(store, Emitter())
    assert await sweeper.tick() == 1
    assert query(engine_url, "SELECT count(*) FROM {spend_sum} WHERE amount = 2") == [(3,)]
    assert await sweeper.tick() == 0
    assert await store.spent("ai", clock.now() - DAY) == 2


async def test_it_comes_round_the_sooner_the_more_there_is_to_do(store: Store) -> None:
    sweeper = GateSweeper(store, Emitter())
    waits = [sweeper.next_wait(did) for did in (0, 49, 50, 499, 500, 1_000)]
    assert waits == [30 * SECOND, 30 * SECOND, 3 * SECOND, 3 * SECOND, *[timedelta(milliseconds=50)] * 2]
