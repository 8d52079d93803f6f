"""StatisticStore: every count is added once, and the sums of every stretch are those of its minutes."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from msgspec.structs import replace
from tests.conftest import OpenStore
from tests.support.builders.jobs import DAY, HOUR, MINUTE, SECOND

from perdure.clock import ManualClock
from perdure.domain.operate.statistics import BUCKETS, EMPTY, Ending
from perdure.storage.operate.statistics import QUARTER, SPANS, Counted, Flush, Summed, Window
from perdure.storage.port import Store
from perdure.storage.records import Keep

NOON: Final = datetime(2026, 2, 3, 12, tzinfo=UTC)
_ENDINGS: Final = tuple(Ending)


@pytest.fixture
def clock() -> ManualClock:
    """At a full hour of some day."""
    return ManualClock(NOON)


def a_count(
    minute: datetime = NOON,
    queue: str = "mail",
    kind: str = "send",
    ending: Ending = Ending.SUCCEEDED,
    jobs: int = 1,
    bucket: int = 0,
) -> Counted:
    """So many attempts that waited and ran for times of this bucket."""
    histogram = tuple(jobs if place == bucket else 0 for place in range(BUCKETS))
    return Counted(
        minute=minute,
        queue=queue,
        kind=kind,
        ending=ending,
        jobs=jobs,
        waited=0.5 * jobs,
        ran=0.25 * jobs,
        waits=histogram,
        runs=histogram,
    )


def jobs_of(sums: list[Summed], ending: Ending = Ending.SUCCEEDED) -> list[int]:
    return [one.endings[_ENDINGS.index(ending)] for one in sums]


async def roll_up_all(store: Store) -> int:
    minutes = 0
    while rolled := await store.roll_up_statistics():
        minutes += rolled
    return minutes


async def test_counts_are_read_as_they_were_handed_in(store: Store, clock: ManualClock) -> None:
    """With every ending, sum and bucket, before they are rolled up and after."""
    counts = (a_count(ending=Ending.SUCCEEDED, jobs=3, bucket=25), a_count(ending=Ending.HELD, jobs=2))
    assert await store.add_statistics(Flush("w", 1, counts))
    window = Window(since=NOON, until=NOON + HOUR, step=MINUTE, by_queue=True, by_kind=True)
    expected = [
        Summed(
            *(NOON, "mail", "send", (3, 0, 0, 0, 0, 2), 2.5, 1.25),
            waits=(2, *EMPTY[2:], 3),
            runs=(2, *EMPTY[2:], 3),
        )
    ]
    assert await store.statistics(window) == expected
    clock.move(2 * MINUTE)
    assert await store.roll_up_statistics() == 1
    assert await store.statistics(window) == expected


async def test_a_flush_whose_answer_was_lost_is_added_once(store: Store) -> None:
    """The writer sends it again, also after it was rolled up, and goes on with the next."""
    first, second = Flush("w", 1, (a_count(),)), Flush("w", 2, (a_count(),))
    assert await store.add_statistics(first)
    assert not await store.add_statistics(first)
    assert await store.add_statistics(second)
    assert not await store.add_statistics(first)
    window = Window(since=NOON, until=NOON + HOUR)
    assert jobs_of(await store.statistics(window)) == [2]


async def test_a_repeated_flush_stays_unwritten_after_the_roll_up(store: Store, clock: ManualClock) -> None:
    flush = Flush("w", 1, (a_count(),))
    await store.add_statistics(flush)
    clock.move(HOUR)
    assert await store.roll_up_statistics() == 1
    assert not await store.add_statistics(flush)
    assert await store.roll_up_statistics() == 0
    assert jobs_of(await store.statistics(Window(since=NOON, until=NOON + HOUR))) == [1]


async def test_two_writers_add_up(store: Store, other_store: OpenStore) -> None:
    """Both count the same minute at the same time."""
    other = await other_store()
    kinds = [f"kind {number}" for number in range(20)]
    for number in range(1, 6):
        flushes = [
            Flush(writer, number, tuple(a_count(kind=kind) for kind in order))
            for writer, order in (("one", kinds), ("two", kinds[::-1]))
        ]
        await asyncio.gather(store.add_statistics(flushes[0]), other.add_statistics(flushes[1]))
    sums = await store.statistics(Window(since=NOON, until=NOON + HOUR, by_kind=True))
    assert jobs_of(sums) == [10] * 20


async def test_sums_of_every_stretch_are_those_of_its_minutes(store: Store, clock: ManualClock) -> None:
    """All queues and kinds, each of them, and both together, by minute, quarter of an hour, hour and six hours."""
    counts = [
        a_count(NOON + minute * MINUTE, queue, kind, ending, jobs=minute + 1, bucket=minute % BUCKETS)
        for minute in range(90)
        for queue, kind in (("mail", "send"), ("mail", "digest"), ("web", "send"))
        for ending in (Ending.SUCCEEDED, Ending.RETRIED)
    ]
    await store.add_statistics(Flush("w", 1, tuple(counts)))
    clock.move(2 * HOUR)
    assert await roll_up_all(store) == 90
    for span in SPANS:
        for by_queue, by_kind in ((False, False), (True, False), (False, True), (True, True)):
            window = Window(since=NOON, until=NOON + 2 * HOUR, span=span, step=span, by_queue=by_queue, by_kind=by_kind)
            expected: dict[tuple[datetime, str | None, str | None], int] = {}
            for count in counts:
                begins = NOON + (count.minute - NOON) // span * span
                key = begins, count.queue if by_queue else None, count.kind if by_kind else None
                expected[key] = expected.get(key, 0) + (count.jobs if count.ending is Ending.RETRIED else 0)
            sums = await store.statistics(window)
            found = {(one.at, one.queue, one.kind): one.endings[1] for one in sums}
            assert found == expected
            assert sum(sum(one.runs) for one in sums) == sum(count.jobs for count in counts)
            assert list(found) == sorted(expected, key=lambda key: (key[0], key[1] or "", key[2] or ""))


async def test_a_window_chooses_a_queue_or_a_kind(store: Store, clock: ManualClock) -> None:
    """What is not rolled up is chosen in the same way."""
    counts = (a_count(jobs=1), a_count(kind="digest", jobs=2), a_count(queue="web", jobs=4))
    await store.add_statistics(Flush("w", 1, counts))
    window = Window(since=NOON, until=NOON + HOUR)
    for _ in range(2):
        assert jobs_of(await store.statistics(window)) == [7]
        for chosen, expected in (
            (Window(since=NOON, until=NOON + HOUR, queue="mail"), [3]),
            (Window(since=NOON, until=NOON + HOUR, kind="send"), [5]),
            (Window(since=NOON, until=NOON + HOUR, queue="mail", by_kind=True), [2, 1]),
            (Window(since=NOON, until=NOON + HOUR, kind="send", by_queue=True), [1, 4]),
            (Window(since=NOON, until=NOON + HOUR, queue="web", kind="digest"), []),
            (Window(since=NOON + MINUTE, until=NOON + HOUR), []),
        ):
            assert jobs_of(await store.statistics(chosen)) == expected
        clock.move(10 * MINUTE)
        await store.roll_up_statistics()


async def test_a_minute_under_way_is_not_rolled_up(store: Store, clock: ManualClock) -> None:
    """A late count of a minute that was, is added by the next roll-up."""
    await store.add_statistics(Flush("w", 1, (a_count(),)))
    clock.move(MINUTE + 10 * SECOND)
    assert await store.roll_up_statistics() == 0
    clock.move(10 * SECOND)
    assert await store.roll_up_statistics() == 1
    await store.add_statistics(Flush("w", 2, (a_count(jobs=5),)))
    clock.move(DAY)
    assert await store.roll_up_statistics() == 1
    window = Window(since=NOON, until=NOON + HOUR, span=timedelta(hours=1))
    assert jobs_of(await store.statistics(window)) == [6]


async def test_two_who_roll_up_at_once_add_each_count_once(
    store: Store, other_store: OpenStore, clock: ManualClock
) -> None:
    other = await other_store()
    minutes = tuple(a_count(NOON + minute * MINUTE) for minute in range(30))
    await store.add_statistics(Flush("w", 1, minutes))
    clock.move(HOUR)
    await asyncio.gather(*(one.roll_up_statistics() for one in (store, other) * 4))
    await roll_up_all(store)
    for span in SPANS:
        window = Window(since=NOON, until=NOON + HOUR, span=span)
        assert jobs_of(await store.statistics(window)) == [30]


async def test_statistics_are_kept_for_as_long_as_settings_say(store: Store, clock: ManualClock) -> None:
    """Minutes and quarters go before hours; None keeps them."""
    await store.add_statistics(Flush("w", 1, (a_count(), a_count(NOON + HOUR))))
    clock.move(2 * HOUR)
    await roll_up_all(store)
    keep = Keep(statistics_by_minute="2h", statistics_by_hour="1d")
    clock.move(SECOND)
    assert await store.forget_statistics(keep, 3) == 3
    assert await store.forget_statistics(keep, 100) == 5
    assert await store.forget_statistics(keep, 100) == 0

    async def kept(span: timedelta) -> list[int]:
        return jobs_of(await store.statistics(Window(since=NOON, until=NOON + DAY, span=span, step=span)))

    assert [await kept(span) for span in SPANS] == [[1], [1], [1, 1], [2]]
    clock.move(2 * DAY)
    assert await store.forget_statistics(Keep(statistics_by_minute=None, statistics_by_hour="1d"), 100) > 0
    assert [await kept(span) for span in SPANS] == [[1], [1], [], []]
    assert await kept(QUARTER) == [1]


async def test_names_that_no_database_can_store_are_counted_all_the_same(store: Store) -> None:
    """A count must never be refused: the worker would try it for ever."""
    await store.add_statistics(Flush("w\0", 1, (a_count(queue="q\0", kind="half \ud800"),)))
    assert jobs_of(await store.statistics(Window(since=NOON, until=NOON + HOUR))) == [1]


async def test_a_window_without_times_has_the_same_counts_and_no_histograms(store: Store, clock: ManualClock) -> None:
    """Before the roll-up and after it."""
    counts = (a_count(jobs=3, bucket=4), a_count(kind="digest", ending=Ending.DIED, jobs=2))
    await store.add_statistics(Flush("w", 1, counts))
    whole = Window(since=NOON, until=NOON + HOUR, step=MINUTE, by_queue=True, by_kind=True)
    for _ in range(2):
        expected = [replace(one, waits=EMPTY, runs=EMPTY) for one in await store.statistics(whole)]
        assert await store.statistics(replace(whole, times=False)) == expected
        assert len(expected) == 2
        clock.move(HOUR)
        await roll_up_all(store)


async def test_totals_hold_every_count_once_and_never_fall(store: Store, clock: ManualClock) -> None:
    """Before the roll-up, after it, and after the sums of stretches are deleted; late counts are added."""
    counts = (a_count(jobs=3, bucket=25), a_count(ending=Ending.DIED, jobs=2), a_count(kind="sort"))
    await store.add_statistics(Flush("w", 1, counts))
    expected = [
        Summed(None, "mail", "send", (3, 0, 2, 0, 0, 0), 2.5, 1.25, (2, *EMPTY[2:], 3), (2, *EMPTY[2:], 3)),
        Summed(None, "mail", "sort", (1, 0, 0, 0, 0, 0), 0.5, 0.25, (1, *EMPTY[1:]), (1, *EMPTY[1:])),
    ]
    assert await store.statistic_totals() == expected
    clock.move(2 * MINUTE)
    assert await roll_up_all(store) == 1
    assert await store.statistic_totals() == expected
    clock.move(800 * DAY)
    keep = Keep(statistics_by_minute=DAY, statistics_by_hour=DAY)
    assert await store.forget_statistics(keep, 1_000)
    assert await store.statistic_totals() == expected
    await store.add_statistics(Flush("w", 2, (a_count(ending=Ending.DIED, jobs=4),)))
    await roll_up_all(store)
    assert jobs_of(await store.statistic_totals(), Ending.DIED) == [6, 0]
