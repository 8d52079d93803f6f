"""The scheduler on a clock that the test moves: what fires, when, and what it says."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import pytest
from tests.support.builders.jobs import apply, claim_one, employ
from tests.support.databases.behind import query

from perdure.clock import ManualClock
from perdure.domain.jobs import transition
from perdure.domain.jobs.states import JobState
from perdure.domain.operate.audit import By
from perdure.domain.schedule import Fate, Missed, Overlap, Schedule, ScheduleView
from perdure.events import Emitter, Event, ScheduleBroken, ScheduleFired, ScheduleMissed, ScheduleOverlapped
from perdure.policy.schedules.timetable import timetable
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page
from perdure.storage.schedules import Timed
from perdure.upkeep.scheduler import Scheduler

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class House:
    """A store with one schedule, and schedulers of any number of processes."""

    def __init__(self, store: Store, clock: ManualClock) -> None:
        self.store = store
        self.clock = clock
        self.events: list[Event] = []
        self._emitter = Emitter()
        self._emitter.subscribe(self.events.append)
        self.rung = 0

    async def declare(self, *schedules: Schedule) -> None:
        now = self.clock.now()
        await self.store.declare_schedules(
            [Timed(one, timetable(one.expression, one.tz).next_after(now)) for one in schedules]
        )

    def scheduler(self, *declared: str) -> Scheduler:
        return Scheduler(
            self.store,
            self._emitter,
            self.clock,
            frozenset(declared),
            self._ring,
            random.Random(7),  # noqa: S311
        )

    async def nominal(self, fate: Fate = Fate.FIRED) -> list[datetime]:
        """The nominal times that met this fate, oldest first."""
        fires = await self.store.fires("s", 10_000)
        return sorted(fire.nominal_at for fire in fires if fire.fate is fate)

    def said(self, kind: type[Event]) -> Sequence[Event]:
        return [event for event in self.events if isinstance(event, kind)]

    def _ring(self) -> None:
        self.rung += 1


@pytest.fixture
def house(store: Store, clock: ManualClock) -> House:
    clock.move(NOON - clock.now())
    return House(store, clock)


def every_minute(**changes: object) -> Schedule:
    return Schedule(**({"name": "s", "kind": "k", "expression": "* * * * *", "overlap": Overlap.ALLOW} | changes))  # type: ignore[arg-type]


async def jobs(store: Store) -> int:
    return len(await store.jobs(JobFilter(), Page(10_000)))


async def test_b11_a_due_time_on_an_exact_minute_is_taken_and_none_before(house: House) -> None:
    await house.declare(every_minute())
    scheduler = house.scheduler("s")
    house.clock.move(MINUTE - timedelta(microseconds=1))
    assert (await scheduler.tick()).fires == ()
    house.clock.move(timedelta(microseconds=1))
    [fire] = (await scheduler.tick()).fires
    assert (fire.nominal_at, fire.fate) == (NOON + MINUTE, Fate.FIRED)
    assert (await scheduler.tick()).fires == ()
    assert house.rung == 1


async def test_a_job_knows_its_schedule_and_its_nominal_time(house: House) -> None:
    await house.declare(every_minute(args='{"a":1}', queue="q", priority=2, crash_limit=7))
    house.clock.move(MINUTE + timedelta(seconds=3))
    [fire] = (await house.scheduler("s").tick()).fires
    assert fire.job_id is not None
    view = await house.store.job(fire.job_id)
    assert view is not None
    assert (view.kind, view.args, view.queue, view.priority, view.state) == ("k", '{"a":1}', "q", 2, JobState.READY)
    assert view.tags == ("schedule:s",)
    assert view.meta == '{"schedule":"s","nominal_at":"2026-01-01T12:01:00Z","cause":"time"}'
    fired = ScheduleFired("s", "2026-01-01T12:01:00+00:00", fire.job_id, 3.0, "time", queue="q", kind="k")
    assert house.said(ScheduleFired) == [fired]


async def test_it_waits_until_the_next_time_that_it_knows(house: House) -> None:
    await house.declare(every_minute())
    scheduler = house.scheduler("s")
    house.clock.move(timedelta(seconds=59.7))
    assert scheduler.next_wait(await scheduler.tick()) == timedelta(seconds=0.3)
    house.clock.move(timedelta(seconds=0.3))
    assert scheduler.next_wait(await scheduler.tick()) == scheduler.interval


async def test_g6_of_two_processes_one_fires(house: House) -> None:
    await house.declare(every_minute())
    first, second = house.scheduler("s"), house.scheduler("s")
    for _ in range(5):
        house.clock.move(MINUTE)
        await first.tick()
        await second.tick()
    assert await house.nominal() == [NOON + MINUTE * number for number in range(1, 6)]
    assert await jobs(house.store) == 5


async def test_g6_a_restart_neither_repeats_nor_forgets(house: House) -> None:
    await house.declare(every_minute(missed=Missed.ALL, within=HOUR))
    for _ in range(3):
        house.clock.move(MINUTE * 2)
        await house.declare(every_minute(missed=Missed.ALL, within=HOUR))  # as every worker does that opens
        await house.scheduler("s").tick()
    assert await house.nominal() == [NOON + MINUTE * number for number in range(1, 7)]


@pytest.mark.parametrize(
    ("missed", "fired"),
    [
        (Missed.SKIP, [180]),
        (Missed.ONCE, [178, 179, 180]),  # 179 is just a minute late: prompt; 178 stands for all before it
        (Missed.ALL, list(range(120, 181))),
    ],
)
async def test_g6_what_was_missed_is_let_go_made_up_once_or_made_up_in_full(
    house: House, missed: Missed, fired: list[int]
) -> None:
    within = timedelta(seconds=30) if missed is Missed.SKIP else HOUR
    await house.declare(every_minute(missed=missed, within=within))
    house.clock.move(HOUR * 3)
    await house.scheduler("s").tick()
    assert await house.nominal() == [NOON + MINUTE * number for number in fired]
    [told] = house.said(ScheduleMissed)
    assert isinstance(told, ScheduleMissed)
    assert told.missed == 180 - len(fired)
    lost = await house.nominal(Fate.MISSED)
    assert len(lost) == min(told.missed, 100)
    assert told.last == lost[-1].isoformat()


async def test_a_long_backlog_is_made_up_in_steps_without_a_pause(house: House) -> None:
    await house.declare(every_minute(missed=Missed.ALL, within=timedelta(days=2)))
    house.clock.move(timedelta(minutes=1_200))
    scheduler = house.scheduler("s")
    counts, did = [], await scheduler.tick()
    while did.fires:
        counts.append(len(did.fires))
        assert scheduler.next_wait(did) == timedelta(0) or len(did.fires) < 500
        did = await scheduler.tick()
    assert counts == [500, 500, 200]


async def test_g6_a_clock_that_goes_ahead_and_comes_back_doubles_and_silences_nothing(house: House) -> None:
    await house.declare(every_minute())
    scheduler = house.scheduler("s")
    house.clock.move(MINUTE)
    await scheduler.tick()
    house.clock.move(HOUR)
    await scheduler.tick()
    house.clock.move(-HOUR)
    for _ in range(3):
        await scheduler.tick()
        house.clock.move(MINUTE)
    await scheduler.tick()
    fired = await house.nominal()
    assert fired == sorted(set(fired))
    assert fired[:4] == [NOON + MINUTE * number for number in range(1, 5)]
    house.clock.move(HOUR - MINUTE * 4)
    await scheduler.tick()
    assert len(await house.nominal()) == await jobs(house.store)


async def test_g6_a_process_that_starts_after_the_clock_came_back_puts_schedules_back(house: House) -> None:
    await house.declare(every_minute())
    house.clock.move(timedelta(days=400))
    await house.scheduler("s").tick()
    house.clock.move(-timedelta(days=400))
    scheduler = house.scheduler("s")
    await scheduler.tick()
    house.clock.move(MINUTE)
    [fire] = (await scheduler.tick()).fires
    assert fire.nominal_at == NOON + MINUTE


async def test_g6_what_fell_due_between_the_clocks_return_and_the_next_look_fires_all_the_same(house: House) -> None:
    await house.declare(every_minute(expression="* * * * * *"))
    scheduler = house.scheduler("s")
    house.clock.move(HOUR)
    await scheduler.tick()
    house.clock.move(-HOUR)
    house.clock.move(timedelta(seconds=5))  # nobody looked meanwhile
    await scheduler.tick()
    await scheduler.tick()
    assert (await house.nominal())[:5] == [NOON + timedelta(seconds=number) for number in range(1, 6)]


async def test_g6_one_that_has_never_fired_is_put_back_with_the_clock(house: House) -> None:
    await house.declare(every_minute())
    scheduler = house.scheduler("s")
    await scheduler.tick()
    house.clock.move(-HOUR)
    await scheduler.tick()
    house.clock.move(MINUTE)
    await scheduler.tick()
    assert (await house.nominal())[-1] == NOON - HOUR + MINUTE


async def test_g6_one_that_another_process_moves_on_at_that_moment_is_put_back_all_the_same(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That other one took its step by the clock as it was, and died before it could look again."""
    await house.declare(every_minute())
    scheduler, other = house.scheduler("s"), house.scheduler("s")
    house.clock.move(HOUR)
    await scheduler.tick()
    house.clock.move(-HOUR)
    look = house.store.schedules

    async def schedules() -> list[ScheduleView]:
        views = await look()
        monkeypatch.setattr(house.store, "schedules", look)
        house.clock._now += HOUR + MINUTE
        assert len((await other.tick()).fires) == 1
        house.clock._now -= HOUR + MINUTE
        return views

    monkeypatch.setattr(house.store, "schedules", schedules)
    await scheduler.tick()
    await scheduler.tick()
    house.clock.move(MINUTE)
    await scheduler.tick()
    assert NOON + MINUTE in await house.nominal()


async def test_g6_a_pause_holds_on_when_the_clock_is_put_back(house: House) -> None:
    await house.declare(every_minute())
    until = NOON + HOUR
    await house.store.pause_schedule("s", By("me"), until=until, next_at=until)
    scheduler = house.scheduler("s")
    await scheduler.tick()
    house.clock.move(-HOUR)
    for _ in range(12):
        assert (await scheduler.tick()).fires == ()
        house.clock.move(10 * MINUTE)
    assert [fire.nominal_at for fire in (await scheduler.tick()).fires] == [until]


async def test_a_schedule_that_is_declared_elsewhere_is_left_to_those_who_declare_it(house: House) -> None:
    await house.declare(every_minute())
    house.clock.move(MINUTE)
    assert (await house.scheduler().tick()).fires == ()
    assert len((await house.scheduler("s").tick()).fires) == 1


async def test_one_made_at_run_time_is_fired_by_any_process(house: House) -> None:
    one = every_minute()
    await house.store.save_schedule(Timed(one, NOON + MINUTE), By("me"))
    house.clock.move(MINUTE)
    assert len((await house.scheduler().tick()).fires) == 1


async def test_overlap_skip_lets_a_time_go_while_the_last_job_is_not_finished(house: House) -> None:
    await house.declare(every_minute(overlap=Overlap.SKIP))
    scheduler = house.scheduler("s")
    for _ in range(2):
        house.clock.move(MINUTE)
        await scheduler.tick()
    assert await house.nominal(Fate.OVERLAPPED) == [NOON + MINUTE * 2]
    assert house.said(ScheduleOverlapped) == [ScheduleOverlapped("s", "2026-01-01T12:02:00+00:00")]
    claim = await claim_one(house.store, await employ(house.store))
    await apply(house.store, transition.succeeded(claim, None, ()))
    house.clock.move(MINUTE)
    await scheduler.tick()
    assert await house.nominal() == [NOON + MINUTE, NOON + MINUTE * 3]


async def test_overlap_queue_lets_one_run_at_a_time(house: House) -> None:
    await house.declare(every_minute(overlap=Overlap.QUEUE))
    scheduler = house.scheduler("s")
    for _ in range(2):
        house.clock.move(MINUTE)
        await scheduler.tick()
    assert await jobs(house.store) == 2
    worker = await employ(house.store)
    first = await claim_one(house.store, worker)
    assert [view.state for view in await house.store.jobs(JobFilter(), Page())] != [JobState.RUNNING] * 2
    await apply(house.store, transition.succeeded(first, None, ()))
    house.clock.move(timedelta(seconds=31))
    await house.store.promote(10)
    await claim_one(house.store, worker)


async def test_jitter_puts_the_job_off_and_not_its_nominal_time(house: House) -> None:
    await house.declare(every_minute(jitter=timedelta(seconds=30)))
    house.clock.move(MINUTE)
    [fire] = (await house.scheduler("s").tick()).fires
    assert fire.job_id is not None
    view = await house.store.job(fire.job_id)
    assert view is not None
    assert view.state is JobState.SCHEDULED
    assert view.due_at is not None
    assert timedelta(0) < view.due_at - fire.nominal_at < timedelta(seconds=30)


async def test_an_unreadable_schedule_is_reported_once_and_delays_no_other(house: House) -> None:
    good = every_minute()
    bad = every_minute(name="bad", expression="61 * * * *")
    await house.store.declare_schedules([Timed(good, NOON + MINUTE), Timed(bad, NOON + MINUTE)])
    scheduler = house.scheduler("s", "bad")
    for _ in range(2):
        house.clock.move(MINUTE)
        did = await scheduler.tick()
        assert [fire.schedule for fire in did.fires] == ["s"]
        assert scheduler.next_wait(did) > timedelta(0)
    [told] = house.said(ScheduleBroken)
    assert isinstance(told, ScheduleBroken)
    assert told.schedule == "bad"
    assert "61" in told.error


async def test_g10_a_schedule_of_a_later_release_delays_no_other(house: House, engine_url: str) -> None:
    await house.declare(every_minute(), every_minute(name="later"))
    table = "perdure_schedule" if engine_url.startswith("sqlite") else "schedule"
    query(
        engine_url,
        f"UPDATE {table} SET definition = replace(definition, '\"allow\"', '\"dance\"') WHERE name = 'later'",
    )
    house.clock.move(MINUTE)
    did = await house.scheduler("s", "later").tick()
    assert [fire.schedule for fire in did.fires] == ["s"]
    [told] = house.said(ScheduleBroken)
    assert isinstance(told, ScheduleBroken)
    assert (told.schedule, "dance" in told.error) == ("later", True)


@pytest.mark.parametrize(
    "change", [lambda s: s.pause_schedule("s", By("me"), until=None, next_at=None)], ids=["paused"]
)
async def test_a_paused_schedule_does_not_fire(house: House, change: Callable[[Store], object]) -> None:
    await house.declare(every_minute())
    await change(house.store)  # type: ignore[misc]
    house.clock.move(HOUR)
    assert (await house.scheduler("s").tick()).fires == ()
