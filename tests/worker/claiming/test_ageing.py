"""Ageing: a job that waits is not passed for ever by more urgent ones, and no job goes before its time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.support.builders.jobs import MINUTE, SECOND, a_job, a_key, employ, enqueue

from perdure.clock import ManualClock
from perdure.domain.jobs.ids import WorkerId
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import JobState
from perdure.errors import SettingsError
from perdure.events import Emitter
from perdure.storage.port import Store
from perdure.storage.records import Front, Wanted
from perdure.worker.claiming.ageing import Ageing, aged
from perdure.worker.claiming.fetcher import Fetcher, FetchOwner
from perdure.worker.claiming.slots import Slots
from perdure.worker.settings import Queue, WorkerSettings

NOW = datetime(2026, 7, 1, tzinfo=UTC)
STEP = 10 * MINUTE


def front(priority: int, minutes: float, queue: str = "q") -> Front:
    """A job that has waited for so many minutes."""
    return Front(queue, priority, NOW - timedelta(minutes=minutes))


class Hands:
    """A monotonic clock."""

    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


class Stream:
    """A queue in which urgent jobs never end, and a worker that takes ten of its jobs every second."""

    def __init__(self, store: Store, clock: ManualClock, worker_id: WorkerId, ageing: timedelta) -> None:
        self.started: list[Claim] = []
        self._store, self._clock, self._hands = store, clock, Hands()
        self._room = 0
        self._fetcher = Fetcher(
            store,
            Slots((Queue("default"),), 10, 10),
            Emitter(),
            FetchOwner(
                start=self.started.extend,
                give_back=self.started.extend,
                has_room=lambda: len(self.started) < self._room,
                poll=lambda: 1.0,
            ),
            ageing=Ageing(store, ageing, self._hands) if ageing else None,
        )
        self._fetcher.worker_id = worker_id

    async def go_on(self) -> set[str]:
        """Let a second pass; the jobs that were taken."""
        await self._store.insert([a_job(priority=0) for _ in range(10)])
        self._clock.move(SECOND)
        self._hands.time += 1
        before = len(self.started)
        self._room = before + 10
        await self._fetcher._fill()
        return {claim.job_id for claim in self.started[before:]}


@pytest.mark.parametrize("priority", [1, 5, 9])
async def test_a_low_priority_is_served_after_its_ageing_and_never_before(
    store: Store, clock: ManualClock, priority: int
) -> None:
    stream = Stream(store, clock, await employ(store), STEP)
    await store.insert([a_job(priority=0) for _ in range(20)])
    low = await enqueue(store, priority=priority)
    clock.move(STEP * priority - 5 * SECOND)
    await stream.go_on()
    await stream.go_on()
    for _ in range(2):
        assert low not in await stream.go_on()
    for _ in range(10):
        if low in await stream.go_on():
            return
    raise AssertionError("it starves")


async def test_a_queue_that_only_seems_to_be_empty_is_looked_at_too(store: Store, clock: ManualClock) -> None:
    """Each claim brings less than was wanted, because some jobs may not run beside others; and yet there is more."""

    async def add_pair(name: str) -> None:
        for _ in range(2):
            await enqueue(store, priority=0, unique=a_key(name, [JobState.RUNNING]))

    stream = Stream(store, clock, await employ(store), STEP)
    await add_pair("first")
    await stream.go_on()
    low = await enqueue(store, priority=9)
    clock.move(100 * STEP)
    for number in range(40):
        await add_pair(f"pair {number}")
        await store.insert([a_job(priority=0) for _ in range(3)])
    for _ in range(17):
        if low in await stream.go_on():
            return
    raise AssertionError("it starves")


async def test_without_ageing_priorities_are_strict(store: Store, clock: ManualClock) -> None:
    stream = Stream(store, clock, await employ(store), timedelta(0))
    low = await enqueue(store, priority=1)
    for _ in range(5):
        clock.move(1_000 * MINUTE)
        assert low not in await stream.go_on()


async def test_many_aged_jobs_take_a_quarter(store: Store, clock: ManualClock) -> None:
    """What was urgent goes on; the others get through in order, a share at a time."""
    stream = Stream(store, clock, await employ(store), STEP)
    low = [a_job(priority=9) for _ in range(40)]
    await store.insert(low)
    clock.move(100 * STEP)
    ids = [job.id for job in low]
    shares = [len(await stream.go_on() & set(ids)) for _ in range(8)]
    assert all(1 <= share <= 4 for share in shares)
    assert 18 <= sum(shares) <= 22
    assert [claim.job_id for claim in stream.started if claim.job_id in set(ids)] == ids[: sum(shares)]


@pytest.mark.parametrize(
    ("fronts", "expected"),
    [
        ([], []),
        ([front(9, 1_000)], []),
        ([front(0, 0), front(9, 89)], []),
        ([front(0, 0), front(9, 91)], [Wanted("q", 1, 9)]),
        ([front(0, 5), front(9, 91)], []),
        ([front(0, 0), front(5, 51), front(9, 91)], [Wanted("q", 1, 5)]),
        ([front(0, 0), front(5, 51), front(9, 99)], [Wanted("q", 1, 9)]),
        ([front(3, 0), front(4, 30), front(4, 11), front(4, 9)], [Wanted("q", 2, 4)]),
        ([front(0, 0, "a"), front(1, 11, "a"), front(1, 99, "b")], [Wanted("a", 1, 1)]),
    ],
)
def test_who_has_aged_past_the_most_urgent(fronts: list[Front], expected: list[Wanted]) -> None:
    assert aged(fronts, STEP) == expected


async def test_a_worker_with_one_slot_serves_both(store: Store, clock: ManualClock) -> None:
    hands = Hands()
    ageing = Ageing(store, STEP, hands)
    await store.insert([a_job(priority=9) for _ in range(20)])
    clock.move(100 * STEP)
    await store.insert([a_job(priority=0)])
    levels = [(await ageing.divide([Wanted("default", 1)]))[0].level for _ in range(12)]
    assert (levels[0], 3 <= levels.count(9) <= 4) == (9, True), levels


class Counting:
    """A store in which nothing ages."""

    asked = 0

    async def fronts(self, queues: list[str], depth: int) -> list[Front]:
        assert (queues, depth > 0) == (["q"], True)
        self.asked += 1
        return []


async def test_the_store_is_asked_once_a_second() -> None:
    store, hands = Counting(), Hands()
    ageing = Ageing(store, STEP, hands)  # type: ignore[arg-type]  # nothing else is asked of it
    for _ in range(5):
        assert await ageing.divide([Wanted("q", 3)]) == [Wanted("q", 3)]
    assert store.asked == 1
    hands.time += 1
    await ageing.divide([Wanted("q", 3)])
    assert store.asked == 2


async def test_a_job_that_comes_into_an_empty_queue_is_not_kept_waiting_by_a_look() -> None:
    store, hands = Counting(), Hands()
    ageing = Ageing(store, STEP, hands)  # type: ignore[arg-type]  # as above
    ageing.note_empty(["q", "other"])
    await ageing.divide([Wanted("other", 3)])
    await ageing.divide([Wanted("q", 3)])
    assert store.asked == 0
    await ageing.divide([Wanted("q", 3)])  # it did not empty the queue: something may wait there
    assert store.asked == 1


def test_ageing_is_a_span_and_may_be_off() -> None:
    assert WorkerSettings().ageing == 10 * MINUTE
    assert WorkerSettings(ageing="1h").ageing == 60 * MINUTE
    assert not WorkerSettings(ageing=0).ageing
    with pytest.raises(SettingsError, match="ageing"):
        WorkerSettings(ageing="-1s")
