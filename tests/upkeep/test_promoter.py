"""The promoter comes round when the next job falls due, by the clock of the store."""

from __future__ import annotations

from tests.support.jobs import SECOND, enqueue

from perdure.clock import ManualClock
from perdure.events import Emitter
from perdure.storage.port import Store
from perdure.upkeep.promoter import Promoter


async def test_it_comes_round_when_the_store_says_and_asks_no_other_clock(store: Store, clock: ManualClock) -> None:
    promoter = Promoter(store, Emitter(), lambda: None)
    await enqueue(store, delay=SECOND)
    clock.move(0.4 * SECOND)
    assert promoter.next_wait(await promoter.tick()) == 0.6 * SECOND
    clock.move(0.6 * SECOND)
    assert (await promoter.tick()).total == 1
