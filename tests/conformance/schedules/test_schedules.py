"""ScheduleStore: schedules as they are declared, made, changed, paused and deleted, and which of them are due."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests.support.builders.jobs import DAY, HOSTILE, HOUR, INSTANT, MINUTE, SECOND, state_of
from tests.support.builders.schedules import a_schedule, fire_next, make, stands, step
from tests.support.databases.behind import query

from perdure.clock import ManualClock
from perdure.domain.jobs.states import JobState
from perdure.domain.operate.audit import By
from perdure.domain.schedule import Missed, Origin, Overlap, Schedule
from perdure.errors import ArgumentError, ConflictError
from perdure.storage.port import Store
from perdure.storage.schedules import Timed


def rich_schedule() -> Schedule:
    return Schedule(
        name="nightly",
        kind="report.send",
        expression="30 2 * * *",
        tz="Europe/Zurich",
        args='{"to":"ops"}',
        missed=Missed.ALL,
        within=timedelta(hours=6, microseconds=1),
        overlap=Overlap.CANCEL,
        jitter=timedelta(milliseconds=1500),
        queue="mail",
        priority=2,
        max_attempts=7,
        crash_limit=1,
    )


async def test_a_schedule_is_shown_as_it_was_made(store: Store, clock: ManualClock) -> None:
    next_at = clock.now() + HOUR
    view = await store.save_schedule(Timed(rich_schedule(), next_at), By("ops"))
    assert view == await store.schedule("nightly")
    assert [view] == await store.schedules()
    assert (view.schedule, view.origin, view.version) == (rich_schedule(), Origin.MADE, 1)
    assert (view.next_at, view.last_at, view.last_job_id) == (next_at, None, None)
    assert (view.paused_at, view.paused_until, view.declared_at) == (None, None, None)
    assert view.created_at == view.changed_at == clock.now()


async def test_a_declared_schedule_is_shown_as_it_was_declared(store: Store, clock: ManualClock) -> None:
    await store.declare_schedules([Timed(rich_schedule(), clock.now()), Timed(a_schedule(), None)])
    view = await stands(store, "nightly")
    assert (view.schedule, view.origin, view.version) == (rich_schedule(), Origin.DECLARED, 1)
    assert (view.next_at, view.declared_at) == (clock.now(), clock.now())
    assert (await stands(store)).next_at is None


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_text_of_a_schedule_is_kept_as_it_is(store: Store, clock: ManualClock, text: str) -> None:
    schedule = a_schedule(text, kind=text, queue=text, args=text, tz=text, expression=text)
    await store.save_schedule(Timed(schedule, clock.now()), By(text))
    assert (await stands(store, text)).schedule == schedule
    fire = await fire_next(store, text)
    assert (fire.schedule, fire.queue) == (text, text)
    assert [one.schedule for one in await store.fires(text, 10)] == [text]
    assert await store.delete_schedule(text, By(text))


@pytest.mark.parametrize("field", ["name", "kind", "queue", "args"])
@pytest.mark.parametrize("text", ["a\0b", "half \ud83d"])
async def test_text_that_no_job_could_hold_is_refused_by_name(store: Store, field: str, text: str) -> None:
    bad = Timed(replace(a_schedule(), **{field: text}), None)
    for refused in (store.save_schedule(bad, By("ops")), store.declare_schedules([bad])):
        with pytest.raises(ArgumentError) as error:
            await refused
        assert error.value.field == field
    assert await store.schedules() == []


async def test_a_schedule_that_was_never_made_is_unknown(store: Store) -> None:
    assert await store.schedule("nightly") is None
    assert await store.schedules() == []
    assert await store.pause_schedule("nightly", By("ops"), until=None, next_at=None) is None
    assert await store.resume_schedule("nightly", By("ops"), None) is None
    assert not await store.delete_schedule("nightly", By("ops"))
    assert await store.fires("nightly", 10) == []


async def test_schedules_are_listed_by_name(store: Store) -> None:
    for name in ("b", "a", "C", "ä"):
        await make(store, None, name=name)
    assert [view.name for view in await store.schedules()] == ["C", "a", "b", "ä"]


async def test_declaring_again_only_notes_that_it_was_seen(store: Store, clock: ManualClock) -> None:
    await store.declare_schedules([Timed(a_schedule(), clock.now())])
    before = await stands(store)
    clock.move(HOUR)
    await store.declare_schedules([Timed(a_schedule(), clock.now() + DAY)])
    assert await stands(store) == replace(before, declared_at=clock.now())


async def test_a_changed_declaration_takes_effect_and_keeps_its_next_time(store: Store, clock: ManualClock) -> None:
    next_at = clock.now()
    await store.declare_schedules([Timed(a_schedule(), next_at)])
    clock.move(HOUR)
    changed = a_schedule(missed=Missed.ALL, args='{"name":"Eve"}')
    await store.declare_schedules([Timed(changed, clock.now() + DAY)])
    view = await stands(store)
    assert (view.schedule, view.version, view.next_at) == (changed, 2, next_at)
    assert (view.created_at, view.changed_at) == (next_at, clock.now())


@pytest.mark.parametrize("change", [{"expression": "@daily"}, {"tz": "Asia/Tokyo"}])
async def test_other_times_begin_with_the_first_of_them(
    store: Store, clock: ManualClock, change: dict[str, str]
) -> None:
    later = clock.now() + DAY
    await store.declare_schedules([Timed(a_schedule("declared"), clock.now())])
    await store.declare_schedules([Timed(a_schedule("declared", **change), later)])
    await make(store, clock.now(), name="made")
    await make(store, later, name="made", **change)
    assert [(view.next_at, view.version) for view in await store.schedules()] == [(later, 2), (later, 2)]


async def test_a_declaration_leaves_a_schedule_made_at_run_time_alone(store: Store, clock: ManualClock) -> None:
    """The error names it, and the declarations beside it are not half done."""
    view = await make(store, clock.now())
    with pytest.raises(ConflictError, match=r"report.*made at run time"):
        await store.declare_schedules([Timed(a_schedule("other"), None), Timed(a_schedule(tz="Asia/Tokyo"), None)])
    assert await store.schedules() == [view]


async def test_a_declared_schedule_is_not_changed_at_run_time(store: Store, clock: ManualClock) -> None:
    await store.declare_schedules([Timed(a_schedule(), clock.now())])
    before = await stands(store)
    with pytest.raises(ConflictError, match=r"report.*declared in code"):
        await make(store, None, missed=Missed.ALL)
    assert await stands(store) == before


async def test_saving_again_changes_the_schedule_and_keeps_its_history(store: Store, clock: ManualClock) -> None:
    await make(store, clock.now())
    fire = await fire_next(store)
    before = await stands(store)
    clock.move(SECOND)
    view = await make(store, clock.now() + DAY, priority=1)
    assert view == await stands(store)
    assert (view.schedule.priority, view.version, view.changed_at) == (1, 2, clock.now())
    assert (view.next_at, view.last_at) == (before.next_at, before.last_at)
    assert view.last_job_id == fire.job_id
    assert len(await store.fires("report", 10)) == 1


async def test_saving_the_same_again_is_no_change(store: Store, clock: ManualClock) -> None:
    before = await make(store, clock.now())
    clock.move(HOUR)
    assert await make(store, clock.now()) == before


async def test_a_pause_without_end_holds_until_resumed(store: Store, clock: ManualClock) -> None:
    await make(store, clock.now())
    paused = await store.pause_schedule("report", By("ops"), until=None, next_at=None)
    assert paused == await stands(store)
    assert (paused.paused_at, paused.paused_until, paused.next_at) == (clock.now(), None, None)
    assert paused.version == 1
    clock.move(DAY)
    assert (await store.due_schedules(10, ())).due == ()
    resumed = await store.resume_schedule("report", By("ops"), clock.now())
    assert resumed == await stands(store)
    assert (resumed.paused_at, resumed.paused_until, resumed.next_at) == (None, None, clock.now())
    assert (await store.due_schedules(10, ())).due == (resumed,)


async def test_a_pause_ends_by_itself_at_the_first_time_after_it(store: Store, clock: ManualClock) -> None:
    await make(store, clock.now())
    until = clock.now() + HOUR
    paused = await store.pause_schedule("report", By("ops"), until=until, next_at=until + MINUTE)
    assert paused is not None
    assert (paused.paused_until, paused.next_at) == (until, until + MINUTE)
    clock.move(HOUR)
    assert (await store.due_schedules(10, ())).due == ()
    clock.move(MINUTE)
    assert [view.name for view in (await store.due_schedules(10, ())).due] == ["report"]


async def test_a_schedule_that_is_not_paused_has_nothing_to_resume(store: Store, clock: ManualClock) -> None:
    """Times that are due are not forgotten."""
    before = await make(store, clock.now())
    clock.move(HOUR)
    assert await store.resume_schedule("report", By("ops"), clock.now() + MINUTE) == before
    await store.pause_schedule("report", By("ops"), until=clock.now() + HOUR, next_at=clock.now() + HOUR)
    clock.move(2 * HOUR)
    resumed = await store.resume_schedule("report", By("ops"), clock.now() + MINUTE)
    assert resumed is not None
    assert (resumed.next_at, resumed.paused_at) == (clock.now() - HOUR, None)


@pytest.mark.parametrize("change", [{"args": "[]"}, {"expression": "@daily"}])
async def test_a_pause_holds_on_through_changes(store: Store, clock: ManualClock, change: dict[str, Any]) -> None:
    await store.declare_schedules([Timed(a_schedule("declared"), clock.now())])
    await make(store, clock.now(), name="made")
    for name in ("declared", "made"):
        await store.pause_schedule(name, By("ops"), until=None, next_at=None)
    clock.move(HOUR)
    await store.declare_schedules([Timed(a_schedule("declared", **change), clock.now())])
    await make(store, clock.now(), name="made", **change)
    for view in await store.schedules():
        assert (view.version, view.next_at, view.paused_at) == (2, None, clock.now() - HOUR)
    assert (await store.due_schedules(10, ("declared",))).due == ()


async def test_a_pause_with_an_end_is_not_cut_short_by_other_times(store: Store, clock: ManualClock) -> None:
    await make(store, clock.now())
    until = clock.now() + DAY
    await store.pause_schedule("report", By("ops"), until=until, next_at=until)
    view = await make(store, clock.now() + HOUR, expression="@hourly")
    assert (view.next_at, view.paused_until) == (until, until)
    view = await make(store, until + HOUR, expression="30 * * * *")
    assert view.next_at == until + HOUR


async def test_a_deleted_schedule_is_gone_with_its_record_and_its_jobs_stay(store: Store, clock: ManualClock) -> None:
    await make(store, clock.now())
    fire = await fire_next(store)
    assert await store.delete_schedule("report", By("ops"))
    assert await store.schedules() == []
    assert await store.fires("report", 10) == []
    assert fire.job_id is not None
    assert await state_of(store, fire.job_id) is JobState.READY
    await make(store, clock.now())
    assert (await stands(store)).last_job_id is None


async def test_due_schedules_come_most_overdue_first_with_the_time_of_the_next(
    store: Store, clock: ManualClock
) -> None:
    now = clock.now()
    for name, due in (("late", -HOUR), ("now", 0 * HOUR), ("later", -MINUTE), ("soon", 90 * SECOND), ("never", None)):
        await make(store, None if due is None else now + due, name=name)
    found = await store.due_schedules(10, ())
    assert [view.name for view in found.due] == ["late", "later", "now"]
    assert found.due[0] == await stands(store, "late")
    assert (found.now, found.next_in) == (now, 90 * SECOND)
    assert [view.name for view in (await store.due_schedules(2, ())).due] == ["late", "later"]
    clock.move(90 * SECOND - INSTANT)
    assert (await store.due_schedules(10, ())).next_in == INSTANT


async def test_declared_schedules_are_due_only_where_they_are_declared(store: Store, clock: ManualClock) -> None:
    ours, theirs = Timed(a_schedule("ours"), clock.now()), Timed(a_schedule("theirs"), clock.now() + MINUTE)
    await store.declare_schedules([ours, theirs])
    found = await store.due_schedules(10, ("ours", "unheard of"))
    assert ([view.name for view in found.due], found.next_in) == (["ours"], None)
    found = await store.due_schedules(10, {"theirs"})
    assert (found.due, found.next_in) == ((), MINUTE)
    clock.move(MINUTE)
    assert (await store.due_schedules(10, ())).due == ()
    assert [view.name for view in (await store.due_schedules(10, ["ours", "theirs"])).due] == ["ours", "theirs"]


async def test_history_comes_in_pages_the_latest_first(store: Store, clock: ManualClock) -> None:
    start = clock.now() - HOUR
    await make(store, start, overlap=Overlap.ALLOW)
    await make(store, start, name="other")
    await store.fire([step(await stands(store), times=5)])
    first = await store.fires("report", 3)
    assert [fire.nominal_at for fire in first] == [start + number * MINUTE for number in (4, 3, 2)]
    rest = await store.fires("report", 3, before=first[-1].nominal_at)
    assert [fire.nominal_at for fire in rest] == [start + MINUTE, start]
    assert await store.fires("report", 3, before=start) == []


async def test_every_command_is_in_the_audit_trail(store: Store, clock: ManualClock, engine_url: str) -> None:
    await make(store, clock.now())
    await store.pause_schedule("report", By("ops"), until=clock.now(), next_at=None)
    await store.resume_schedule("report", By("ops"), None)
    await store.delete_schedule("report", By("ops"))
    await store.delete_schedule("report", By("ops"))
    trail = query(engine_url, "SELECT actor, action, details FROM {audit} ORDER BY id")
    assert [(actor, action) for actor, action, _ in trail] == [
        ("ops", f"schedule.{action}") for action in ("save", "pause", "resume", "delete")
    ]
    assert all("report" in str(details) for *_, details in trail)
