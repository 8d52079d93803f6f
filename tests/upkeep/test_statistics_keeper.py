"""The keeper of statistics sums up minutes that are over, ten at a time, and is quick while there are more."""

from __future__ import annotations

from datetime import timedelta

from tests.support.builders.jobs import HOUR, MINUTE, SECOND

from perdure.clock import ManualClock
from perdure.domain.operate.statistics import Ending
from perdure.events import Emitter
from perdure.storage.operate.statistics import Counted, Flush
from perdure.storage.port import Store
from perdure.storage.records import Keep
from perdure.upkeep.statistics_keeper import StatisticsKeeper


async def test_it_sums_up_until_no_minute_is_left(store: Store, clock: ManualClock) -> None:
    first = clock.now().replace(second=0, microsecond=0)
    counts = [
        Counted(minute=first + number * MINUTE, queue="mail", kind="send", ending=Ending.SUCCEEDED, jobs=1)
        for number in range(15)
    ]
    await store.add_statistics(Flush("a worker", 1, tuple(counts)))
    clock.move(HOUR)
    keeper = StatisticsKeeper(store, Emitter(), Keep())
    assert [await keeper.tick() for _ in range(3)] == [True, False, False]
    assert await store.roll_up_statistics() == 0
    assert (keeper.next_wait(True), keeper.next_wait(False)) == (timedelta(milliseconds=50), 30 * SECOND)
