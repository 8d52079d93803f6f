"""What a worker counts, to which minute it belongs, and what becomes of it when the database is away."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from msgspec.structs import replace
from tests.support.builders.jobs import A_FAILURE, HOUR, MINUTE, SECOND, a_job, claim_one, employ
from tests.support.working import at_work, found

from perdure import App, Backoff, CancelJob, Concurrency, JobState, Permanent, Retry, Snooze
from perdure.clock import ManualClock
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import new_job_id
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import Reason
from perdure.domain.operate.statistics import BUCKETS, OTHER, Ending, Point, bucket_of
from perdure.errors import StoreUnavailable
from perdure.events import Emitter, Event, StatisticsDropped
from perdure.operate.desk import Desk
from perdure.storage.operate.statistics import Counted, Flush
from perdure.storage.port import Store
from perdure.worker.recording.statistics import AttemptCounts, StatisticsWriter, ending_of

NOON: Final = datetime(2026, 2, 3, 12, tzinfo=UTC)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOON)


def a_claim(clock: ManualClock, *, waited: timedelta = SECOND, **changes: object) -> Claim:
    """A claim of now that was due some time ago."""
    now = clock.now()
    claim = Claim(new_job_id(), 1, "send", "mail", "{}", 0, 0, 3, now - waited, now, is_fresh=True)
    return replace(claim, **changes)


class _Unsteady:
    """A store that adds what it is handed, and whose answers are lost as often as told."""

    def __init__(self) -> None:
        self.lost = 0
        self.flushes: dict[int, Flush] = {}
        self.calls = 0

    async def add_statistics(self, flush: Flush) -> bool:
        self.calls += 1
        is_new = self.flushes.setdefault(flush.number, flush) is flush
        if self.lost:
            self.lost -= 1
            raise StoreUnavailable("the connection was lost")
        return is_new

    @property
    def counts(self) -> list[Counted]:
        return [count for flush in self.flushes.values() for count in flush.counts]


# Counting


def test_the_minute_is_that_of_the_databases_clock(clock: ManualClock) -> None:
    """Which is read off a claim; attempts that end before the minute is over belong to it."""
    counts = AttemptCounts(clock)
    clock.move(50 * SECOND)
    claim = a_claim(clock)
    counts.succeeded(claim, 50.0, 59.9)
    counts.succeeded(claim, 50.0, 60.0)
    counts.succeeded(claim, 50.0, 185.0)
    taken = {count.minute: count.jobs for count in counts.take()}
    assert taken == {NOON: 1, NOON + MINUTE: 1, NOON + 3 * MINUTE: 1}


def test_waits_and_runs_are_sorted_into_buckets(clock: ManualClock) -> None:
    """However many there are; a job that came back has a run time and no wait."""
    counts = AttemptCounts(clock)
    for _ in range(5_000):
        counts.succeeded(a_claim(clock, waited=2 * SECOND), 0.0, 0.25)
    counts.succeeded(a_claim(clock, is_fresh=False), 0.0, 1_000.0 - 999.5)
    [count] = counts.take()
    assert (count.jobs, count.waited, count.ran) == (5_001, 10_000.0, 1_250.5)
    assert (sum(count.waits), count.waits[bucket_of(2.0)]) == (5_000, 5_000)
    assert (count.runs[bucket_of(0.25)], count.runs[bucket_of(0.5)]) == (5_000, 1)
    assert len(count.waits) == len(count.runs) == BUCKETS
    assert counts.take() == ()


def test_kinds_and_queues_that_take_turns_are_counted_apart(clock: ManualClock) -> None:
    """Also across flushes and minutes: the counts of the last success are kept at hand only until then."""
    counts = AttemptCounts(clock)
    turns = [("send", "mail"), ("send", "mail"), ("read", "mail"), ("send", "other"), ("send", "mail")]
    for ended in (1.0, 61.0):
        for kind, queue in turns:
            counts.succeeded(a_claim(clock, kind=kind, queue=queue), ended - 1, ended)
        clock.move(MINUTE)
    expected = {("mail", "send"): 3, ("mail", "read"): 1, ("other", "send"): 1}
    taken = counts.take()
    for minute in (NOON, NOON + MINUTE):
        assert {(one.queue, one.kind): one.jobs for one in taken if one.minute == minute} == expected
    for jobs in (1, 2):
        for _ in range(jobs):
            counts.succeeded(a_claim(clock), 61.0, 62.0)
        assert [count.jobs for count in counts.take()] == [jobs]


def test_a_parked_attempt_has_waited_but_has_no_run_time(clock: ManualClock) -> None:
    counts = AttemptCounts(clock)
    counts.ended(transition.waiting(a_claim(clock), Reason.SNOOZED, SECOND), 0.0, 5.0)
    [count] = counts.take()
    assert (count.jobs, sum(count.waits), sum(count.runs), count.ran) == (1, 1, 0, 0.0)


def test_a_claim_that_a_dead_worker_held_is_counted_now(clock: ManualClock) -> None:
    """Not when it was claimed, which may be days ago."""
    counts = AttemptCounts(clock)
    old = a_claim(clock)
    clock.move(HOUR)
    counts.sent_back(transition.crashed(old, A_FAILURE), clock.now())
    [count] = counts.take()
    assert (count.minute, count.ending, count.jobs) == (NOON + HOUR, Ending.CRASHED, 1)


def test_moves_count_as_what_they_are(clock: ManualClock) -> None:
    claim = a_claim(clock)
    wait = timedelta(seconds=1)
    assert ending_of(transition.succeeded(claim, None, ("a warning",))) is Ending.SUCCEEDED
    assert ending_of(transition.retrying(claim, Reason.FAILED, A_FAILURE, wait)) is Ending.RETRIED
    assert ending_of(transition.retrying(claim, Reason.TIMED_OUT, A_FAILURE, timedelta(0))) is Ending.RETRIED
    assert ending_of(transition.died(claim, Reason.EXHAUSTED, A_FAILURE)) is Ending.DIED
    assert ending_of(transition.crashed_for_good(claim, A_FAILURE)) is Ending.DIED
    assert ending_of(transition.crashed(claim, A_FAILURE)) is Ending.CRASHED
    assert ending_of(transition.cancelled(claim, None)) is Ending.CANCELLED
    assert ending_of(transition.waiting(claim, Reason.SNOOZED, wait)) is Ending.HELD
    assert ending_of(transition.paused(claim, Reason.RATE_LIMITED, wait)) is Ending.HELD
    assert ending_of(transition.released(claim)) is None


def test_hostile_numbers_of_kinds_are_counted_as_other(clock: ManualClock) -> None:
    """Those that came first keep their names, for good."""
    counts = AttemptCounts(clock, most_pairs=10)
    for number in range(1_000):
        held = transition.paused(a_claim(clock, kind=f"kind {number:04}"), Reason.UNKNOWN_KIND, SECOND)
        counts.sent_back(held)
    taken = counts.take()
    assert len(taken) == 11
    assert {count.kind: count.jobs for count in taken}[OTHER] == 990
    counts.succeeded(a_claim(clock, kind="kind 0003"), 0.0, 1.0)
    counts.succeeded(a_claim(clock, kind="kind 0999"), 0.0, 1.0)
    assert [count.kind for count in counts.take()] == ["kind 0003", OTHER]


# Writing


async def test_a_flush_whose_answer_was_lost_is_repeated_as_it_was(clock: ManualClock) -> None:
    """What was counted meanwhile goes with the next one."""
    store, counts = _Unsteady(), AttemptCounts(clock)
    writer = StatisticsWriter(store, Emitter(), counts, SECOND)  # type: ignore[arg-type]
    counts.succeeded(a_claim(clock), 0.0, 1.0)
    store.lost = 2
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await writer.tick()
        counts.succeeded(a_claim(clock), 0.0, 1.0)
    assert await writer.tick() == 2
    assert ([count.jobs for count in store.counts], store.calls) == ([1, 2], 4)
    assert await writer.tick() == 0


async def test_a_database_that_is_away_for_long_costs_the_oldest_minutes(clock: ManualClock) -> None:
    """Memory is bounded; the loss is told."""
    store, counts, events = _Unsteady(), AttemptCounts(clock, most_kept=10), list[Event]()
    emitter = Emitter()
    emitter.subscribe(events.append)
    writer = StatisticsWriter(store, emitter, counts, SECOND)  # type: ignore[arg-type]
    store.lost = 60
    for _ in range(60):
        counts.succeeded(a_claim(clock), clock.monotonic(), clock.monotonic())
        clock.move(MINUTE)
        with pytest.raises(StoreUnavailable):
            await writer.tick()
    await writer.tick()
    assert [count.minute for count in store.counts] == [NOON, *(NOON + n * MINUTE for n in range(50, 60))]
    assert sum(event.counts for event in events if isinstance(event, StatisticsDropped)) == counts.dropped == 49


# A worker


async def total_of(store: Store, jobs: int) -> Point:
    """All that was counted, once so many attempts were."""

    async def look() -> Point | None:
        total = (await Desk(store, "ada").statistics("1h")).groups[0].total
        return total if total.attempts + total.held >= jobs else None

    return await found(look)


async def test_a_worker_counts_every_outcome(real_time_store: Store) -> None:
    """Of tasks, threads, gates and unknown kinds; it has written all of it when it has closed."""
    store, app = real_time_store, App("sqlite:///unused.db")
    one = Retry(attempts=2, backoff=Backoff.fixed("10ms"))

    @app.job
    async def fine() -> None: ...

    @app.job
    def in_thread() -> None: ...

    @app.job(retry=one)
    async def fails() -> None:
        raise RuntimeError("no")

    @app.job
    async def called_off() -> None:
        raise CancelJob("not needed")

    @app.job
    async def hopeless() -> None:
        raise Permanent("never")

    @app.job
    async def snoozes() -> None:
        raise Snooze("1h")

    kinds = ("fine", "in_thread", "fails", "called_off", "hopeless", "snoozes", "unheard_of")
    await store.insert([a_job(kind=kind, args="{}") for kind in kinds])
    async with at_work(store, app, statistics="1h"):
        await found(lambda: _all_done(store))
    total = await total_of(store, 8)
    assert (total.succeeded, total.retried, total.died, total.cancelled, total.held) == (2, 1, 2, 1, 2)
    assert (total.run.count, total.wait.count) == (6, 7)
    by_kind = (await Desk(store, "ada").statistics("1h", by="kind")).groups
    assert {group.kind for group in by_kind} == set(kinds)


async def _all_done(store: Store) -> bool:
    counts = {count.state: count.jobs for count in await store.counts()}
    return counts.keys() <= {JobState.SUCCEEDED, JobState.DEAD, JobState.CANCELLED, JobState.WAITING, JobState.PAUSED}


async def test_what_a_gate_sends_back_is_held(real_time_store: Store) -> None:
    store, app = real_time_store, App("sqlite:///unused.db")
    release = asyncio.Event()

    @app.job(gates=[Concurrency(1)])
    async def alone() -> None:
        await release.wait()

    await store.insert([a_job(kind="alone", args="{}") for _ in range(2)])
    async with at_work(store, app, statistics="50ms") as shift:
        await found(lambda: _holds(shift.worker.held))
        release.set()
        total = await total_of(store, 2)
    assert total.held >= 1


async def _holds(held: dict[str, int]) -> bool:
    return bool(held)


async def test_a_crash_is_counted_by_the_worker_that_rescues_the_job(real_time_store: Store) -> None:
    store, app = real_time_store, App("sqlite:///unused.db")

    @app.job
    async def greet(name: str) -> None: ...

    worker_id = await employ(store)
    await store.insert([a_job()])
    await claim_one(store, worker_id)
    await store.retire(worker_id)
    async with at_work(store, app, statistics="50ms", sweep="50ms"):
        total = await total_of(store, 2)
    assert (total.crashed, total.succeeded, total.failure_share) == (1, 1, 0.5)


async def test_a_worker_may_count_nothing(real_time_store: Store) -> None:
    store, app = real_time_store, App("sqlite:///unused.db")

    @app.job
    async def fine() -> None: ...

    await store.insert([a_job(kind="fine", args="{}")])
    async with at_work(store, app, statistics=0):
        await found(lambda: _all_done(store))
    assert (await Desk(store, "ada").statistics("1h")).groups[0].total.attempts == 0
