"""The calendar: what operators see of schedules, and what they do to them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.support.builders.schedules import a_schedule
from tests.support.databases.behind import query

from perdure.clock import ManualClock
from perdure.domain.operate.audit import By
from perdure.domain.schedule import Cause, Fate, Missed, Origin, Overlap
from perdure.errors import ArgumentError, ConflictError, NotFoundError
from perdure.events import Emitter
from perdure.operate.commands.calendar import BACKFILL_LIMIT_RUNS, Calendar
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page
from perdure.storage.schedules import Timed
from perdure.upkeep.scheduler import Scheduler

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def calendar(store: Store, clock: ManualClock) -> Calendar:
    clock.move(NOON - clock.now())
    return Calendar(store, By("ada"))


async def tick(store: Store, clock: ManualClock) -> int:
    return len((await Scheduler(store, Emitter(), clock, (), lambda: None).tick()).fires)


async def test_a_schedule_is_made_shown_changed_and_deleted(calendar: Calendar, store: Store) -> None:
    made = await calendar.save(a_schedule("s"))
    assert (made.origin, made.version, made.next_at) == (Origin.MADE, 1, NOON + MINUTE)
    changed = await calendar.save(a_schedule("s", expression="0 * * * *"))
    assert (changed.version, changed.next_at) == (2, NOON + timedelta(hours=1))
    detail = await calendar.schedule("s", shown=2)
    assert detail.upcoming == (NOON + timedelta(hours=1), NOON + timedelta(hours=2))
    assert [view.name for view in await calendar.schedules()] == ["s"]
    await calendar.delete("s")
    with pytest.raises(NotFoundError, match="there is no schedule 's'"):
        await calendar.schedule("s")


async def test_one_declared_in_code_is_changed_only_there(calendar: Calendar, store: Store) -> None:
    await store.declare_schedules([Timed(a_schedule("s"), NOON + MINUTE)])
    with pytest.raises(ConflictError, match="declared in code"):
        await calendar.save(a_schedule("s", queue="other"))


async def test_a_pause_lets_times_pass_and_a_resume_makes_none_up(
    calendar: Calendar, store: Store, clock: ManualClock
) -> None:
    await calendar.save(a_schedule("s", missed=Missed.ALL, within=timedelta(days=1)))
    paused = await calendar.pause("s")
    assert (paused.next_at, paused.paused_at) == (None, NOON)
    clock.move(MINUTE * 10)
    assert await tick(store, clock) == 0
    resumed = await calendar.resume("s")
    assert (resumed.next_at, resumed.paused_at) == (NOON + MINUTE * 11, None)


async def test_a_pause_with_an_end_ends_by_itself(calendar: Calendar, store: Store, clock: ManualClock) -> None:
    await calendar.save(a_schedule("s"))
    paused = await calendar.pause("s", until=NOON + MINUTE * 5)
    assert (paused.next_at, paused.paused_until) == (NOON + MINUTE * 5, NOON + MINUTE * 5)
    clock.move(MINUTE * 4)
    assert await tick(store, clock) == 0
    clock.move(MINUTE)
    assert await tick(store, clock) == 1


@pytest.mark.parametrize("until", [NOON, datetime(2026, 1, 2)])  # noqa: DTZ001 - that is what is refused
async def test_a_pause_until_a_time_that_is_over_or_has_no_zone_is_refused(calendar: Calendar, until: datetime) -> None:
    await calendar.save(a_schedule("s"))
    with pytest.raises(ArgumentError, match="until must be a future time, with its zone"):
        await calendar.pause("s", until=until)


async def test_one_triggered_by_hand_runs_beside_its_regular_times(
    calendar: Calendar, store: Store, clock: ManualClock
) -> None:
    await calendar.save(a_schedule("s", overlap=Overlap.SKIP))
    clock.move(timedelta(seconds=7))
    fires = [await calendar.trigger("s")]
    clock.move(timedelta(seconds=1))
    fires.append(await calendar.trigger("s"))
    assert [(fire.cause, fire.fate) for fire in fires] == [(Cause.HAND, Fate.FIRED)] * 2
    assert (await calendar.schedule("s")).view.next_at == NOON + MINUTE
    assert len(await store.jobs(JobFilter(tag="schedule:s"), Page())) == 2


async def test_who_had_jobs_made_is_in_the_audit_trail(
    calendar: Calendar, store: Store, clock: ManualClock, engine_url: str
) -> None:
    await calendar.save(a_schedule("s"))
    clock.move(MINUTE)
    assert await tick(store, clock) == 1  # by the clock: nobody asked for it
    clock.move(timedelta(seconds=1))
    by_hand = await calendar.trigger("s")
    backfilled = await calendar.backfill("s", NOON - 2 * MINUTE, NOON)
    trail = query(engine_url, "SELECT actor, action, job_id FROM {audit} WHERE action <> 'schedule.save' ORDER BY id")
    assert [(actor, action) for actor, action, _ in trail] == [
        ("ada", "schedule.trigger"),
        *[("ada", "schedule.backfill")] * 2,
    ]
    assert {str(job_id) for _, _, job_id in trail} == {by_hand.job_id, *(fire.job_id for fire in backfilled)}


async def test_g6_a_backfill_makes_each_nominal_time_once_if_some_were_made_before(
    calendar: Calendar, store: Store, clock: ManualClock
) -> None:
    await calendar.save(a_schedule("s", overlap=Overlap.ALLOW))
    clock.move(MINUTE * 3)
    await tick(store, clock)  # the second is just a minute late and fires with the third, the first was missed
    clock.move(MINUTE * 7)
    made = await calendar.backfill("s", NOON + MINUTE, NOON + MINUTE * 6)
    assert [fire.nominal_at for fire in made] == [NOON + MINUTE * number for number in (1, 4, 5)]
    assert {fire.cause for fire in made} == {Cause.BACKFILL}
    assert await calendar.backfill("s", NOON + MINUTE, NOON + MINUTE * 6) == []
    assert len(await store.jobs(JobFilter(), Page())) == 5


@pytest.mark.parametrize(
    ("start", "end", "problem"),
    [
        (NOON, NOON, "end must be later than the start"),
        (NOON - MINUTE, NOON + MINUTE, "end must not lie in the future"),
        (NOON - MINUTE * (BACKFILL_LIMIT_RUNS + 1), NOON, "more than 10,000 times of the schedule"),
        (datetime(2026, 1, 1), NOON, "start and end need a time zone"),  # noqa: DTZ001 - that is what is refused
    ],
)
async def test_a_backfill_that_cannot_be_meant_is_refused(
    calendar: Calendar, start: datetime, end: datetime, problem: str
) -> None:
    await calendar.save(a_schedule("s"))
    with pytest.raises(ArgumentError, match=problem):
        await calendar.backfill("s", start, end)


@pytest.mark.parametrize("command", ["pause", "resume", "delete", "trigger", "schedule"])
async def test_a_schedule_that_is_not_there_is_reported_by_name(calendar: Calendar, command: str) -> None:
    with pytest.raises(NotFoundError, match="there is no schedule 'nobody'"):
        await getattr(calendar, command)("nobody")


async def test_one_that_cannot_be_read_is_shown_with_the_reason(calendar: Calendar, store: Store) -> None:
    await store.save_schedule(Timed(a_schedule("s", expression="61 * * * *"), NOON), By("ada"))
    detail = await calendar.schedule("s")
    assert detail.upcoming == ()
    assert "61" in (detail.unreadable or "")


async def test_all_are_listed_with_their_next_and_their_last_time(
    calendar: Calendar, store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many there are, none is asked for by itself."""
    await calendar.save(a_schedule("a"))
    await calendar.save(a_schedule("b", expression="0 * * * *"))
    await store.save_schedule(Timed(a_schedule("odd", expression="@lunar"), None), By("ada"))
    for _ in range(2):
        clock.move(MINUTE)
        assert await tick(store, clock) == 1
    one_by_one = [await calendar.schedule(name, shown=1) for name in ("a", "b", "odd")]
    for question in ("schedule", "fires"):
        monkeypatch.setattr(store, question, None)
    details = await calendar.details()
    assert details == one_by_one
    assert [len(detail.fires) for detail in details] == [1, 0, 0]


async def test_one_that_is_not_paused_is_not_resumed(calendar: Calendar) -> None:
    await calendar.save(a_schedule("s"))
    with pytest.raises(ConflictError, match="schedule 's' is not paused"):
        await calendar.resume("s")
