"""The promoter comes round when the next job falls due, by the clock of the store, and gets past bad rows."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.conformance.fleet.test_promote import damaged
from tests.support.builders.jobs import HOUR, MINUTE, SECOND, a_key, enqueue, state_of
from tests.support.databases.behind import query

from perdure.clock import ManualClock
from perdure.domain.jobs.states import JobState
from perdure.errors import StoreRefused, StoreUnavailable
from perdure.events import Emitter, Event, PromotionFailed
from perdure.storage.port import Store
from perdure.storage.records import Promoted
from perdure.upkeep.promoter import Promoter


class Beat:
    """A promoter, what it tells, and its time."""

    def __init__(self, store: Store) -> None:
        self.told: list[Event] = []
        self.seconds = 100.0
        emitter = Emitter()
        emitter.subscribe(self.told.append)
        self.promoter = Promoter(store, emitter, lambda: None, lambda: self.seconds)


async def test_it_comes_round_when_the_store_says_and_asks_no_other_clock(store: Store, clock: ManualClock) -> None:
    promoter = Promoter(store, Emitter(), lambda: None)
    await enqueue(store, delay=SECOND)
    clock.move(0.4 * SECOND)
    assert promoter.next_wait(await promoter.tick()) == 0.6 * SECOND
    clock.move(0.6 * SECOND)
    assert (await promoter.tick()).total == 1


async def test_a8_one_bad_row_never_stops_the_others(store: Store, clock: ManualClock, engine_url: str) -> None:
    """It is reported, and set aside: the next ones go in batches again."""
    beat = Beat(store)
    bad = await damaged(store, engine_url, delay=MINUTE)
    others = [await enqueue(store, delay=2 * MINUTE) for _ in range(20)]
    clock.move(HOUR)
    assert (await beat.promoter.tick()).total == 20
    assert {await state_of(store, job_id) for job_id in others} == {JobState.READY}
    [told] = beat.told
    assert isinstance(told, PromotionFailed)
    assert told.job_id == bad
    assert told.error
    later = await enqueue(store, delay=MINUTE)
    clock.move(HOUR)
    did = await beat.promoter.tick()
    assert did.total == 1
    assert beat.promoter.next_wait(did) == beat.promoter.interval
    assert await state_of(store, later) is JobState.READY
    assert len(beat.told) == 1


async def test_a8_a_bad_row_is_tried_again_after_a_minute(store: Store, clock: ManualClock, engine_url: str) -> None:
    beat = Beat(store)
    bad = await damaged(store, engine_url, delay=MINUTE)
    clock.move(HOUR)
    for seconds, reports in ((0, 1), (59, 1), (1, 2)):
        beat.seconds += seconds
        await beat.promoter.tick()
        assert len(beat.told) == reports
    query(engine_url, "UPDATE {job} SET unique_key = 'found'")
    beat.seconds += 60
    assert (await beat.promoter.tick()).total == 1
    assert await state_of(store, bad) is JobState.READY


async def test_a8_a_page_full_of_bad_rows_starves_no_other_job(
    store: Store, clock: ManualClock, engine_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perdure.upkeep.promoter._JOBS_PER_CALL", 3)
    beat = Beat(store)
    for _ in range(3):
        await enqueue(store, unique=a_key(f"k{_}"), delay=MINUTE)
    query(engine_url, "UPDATE {job} SET unique_key = NULL")
    good = await enqueue(store, delay=2 * MINUTE)
    clock.move(HOUR)
    await beat.promoter.tick()
    assert (await beat.promoter.tick()).total == 1
    assert await state_of(store, good) is JobState.READY


@pytest.mark.parametrize("error", [StoreUnavailable("away"), StoreRefused("read-only")])
async def test_trouble_with_the_store_is_blamed_on_no_job(
    store: Store, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    beat = Beat(store)

    async def fail(*_: object, **__: object) -> Promoted:
        raise error

    monkeypatch.setattr(store, "promote", fail)
    with pytest.raises(type(error)):
        await beat.promoter.tick()
    assert beat.told == []


async def test_what_is_due_and_not_promoted_is_not_rushed(store: Store) -> None:
    promoter = Beat(store).promoter
    assert promoter.next_wait(Promoted({}, None, -MINUTE)) == promoter.interval
    assert promoter.next_wait(Promoted({"q": 1}, None, -MINUTE)) == timedelta(milliseconds=5)
