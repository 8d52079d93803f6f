"""The operator's desk: what it shows, what it does, and what it says it could not do."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.support.builders.jobs import (
    A_FAILURE,
    HOUR,
    a_job,
    a_key,
    apply,
    claim_one,
    employ,
    enqueue,
    job_in,
    numbered_id,
    show,
    start,
    state_of,
)
from tests.support.databases.behind import query

from perdure.clock import ManualClock
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import new_job_id
from perdure.domain.jobs.states import ACTIVE, FINAL, PARKED, JobState, Reason
from perdure.errors import ArgumentError, ConflictError, NotFoundError
from perdure.operate.commands import job_commands
from perdure.operate.commands.actions import CANCEL, PURGE, PURGE_DEAD, REQUEUE, RUN_NOW
from perdure.operate.desk import Desk
from perdure.operate.records import Changed
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page, Tally


@pytest.fixture
def desk(store: Store) -> Desk:
    return Desk(store, "ada")


async def many_dead(store: Store, count: int, **changes: object) -> None:
    """Jobs that died, with ids that sort by number."""
    await store.insert([a_job(id=numbered_id(number), **changes) for number in range(count)])
    worker_id = await employ(store)
    for _ in range(count):
        await apply(store, transition.died(await claim_one(store, worker_id), Reason.EXHAUSTED, A_FAILURE))


def test_a_desk_needs_a_name_for_the_audit_trail(store: Store) -> None:
    with pytest.raises(ArgumentError, match="actor"):
        Desk(store, " ")


async def test_a_job_is_shown_with_its_attempts(store: Store, desk: Desk) -> None:
    claim = await start(store)
    await apply(store, transition.died(claim, Reason.EXHAUSTED, A_FAILURE))
    detail = await desk.job(claim.job_id.upper())
    assert (detail.job.id, detail.job.state) == (claim.job_id, JobState.DEAD)
    assert [attempt.message for attempt in detail.attempts] == [A_FAILURE.message]


async def test_a_job_that_is_not_there_is_named(desk: Desk) -> None:
    missing = new_job_id()
    with pytest.raises(NotFoundError, match=missing):
        await desk.job(missing)
    with pytest.raises(NotFoundError, match="there is no job with the ref 'seven'"):
        await desk.job("seven")
    with pytest.raises(ArgumentError, match=r"^ref must be 1 to 200 printable characters"):
        await desk.job("a\0b")


async def test_f4_a_ref_names_a_job_as_its_id_does(store: Store, desk: Desk) -> None:
    job_id = await enqueue(store, ref="JB_abc123", delay=HOUR)
    other = await enqueue(store, delay=HOUR)
    assert (await desk.job_by_ref("JB_abc123")).id == job_id
    assert (await desk.job("JB_abc123")).job.ref == "JB_abc123"
    assert (await desk.why("JB_abc123")).job.id == job_id
    assert [job.id for job in (await desk.jobs(JobFilter(ref="JB_abc123"))).jobs] == [job_id]
    ran = await desk.run_now(["JB_abc123", job_id, other, "JB_nobody"])
    assert sorted(ran.ids) == [job_id, other]
    assert ran.not_found == ("JB_nobody",)
    assert (await desk.cancel("JB_abc123")).ids == (job_id,)
    with pytest.raises(NotFoundError, match="there is no job JB_nobody"):
        await desk.cancel("JB_nobody")


async def test_pages_follow_each_other_without_gap(store: Store, desk: Desk) -> None:
    await store.insert([a_job(id=numbered_id(number)) for number in range(5)])
    first = await desk.jobs(page=Page(2))
    second = await desk.jobs(page=Page(2, first.next))
    third = await desk.jobs(page=Page(2, second.next))
    seen = [job.id for page in (first, second, third) for job in page.jobs]
    assert seen == [numbered_id(number) for number in (4, 3, 2, 1, 0)]
    assert third.next is None


@pytest.mark.parametrize("limit", [0, 501])
async def test_a_page_has_a_sensible_length(desk: Desk, limit: int) -> None:
    with pytest.raises(ArgumentError, match="limit"):
        await desk.jobs(page=Page(limit))


async def test_dead_letters_are_the_dead_only(store: Store, desk: Desk) -> None:
    dead = await job_in(JobState.DEAD, store)
    await job_in(JobState.SUCCEEDED, store, queue="other")
    assert [job.id for job in (await desk.dead_letters()).jobs] == [dead]
    assert (await desk.dead_letters(JobFilter(error="no such route"))).jobs == ()


async def test_the_overview_counts_jobs_and_names_workers(store: Store, desk: Desk) -> None:
    await start(store)
    await enqueue(store)
    overview = await desk.overview()
    assert (overview.total(JobState.READY), overview.total(JobState.RUNNING)) == (1, 1)
    assert [worker.running for worker in overview.workers] == [1]


async def test_a7_requeue_gives_a_dead_letter_a_new_life(store: Store, desk: Desk) -> None:
    dead = await job_in(JobState.DEAD, store)
    assert (await desk.requeue(dead)).ids == (dead,)
    view = await show(store, dead)
    assert (view.state, view.failures, view.last_error) == (JobState.READY, 0, None)


@pytest.mark.parametrize("state", sorted(ACTIVE))
async def test_requeue_of_an_active_job_is_a_conflict_that_shows_its_state(
    store: Store, desk: Desk, state: JobState
) -> None:
    job_id = await job_in(state, store)
    with pytest.raises(ConflictError, match=f"it is {state}"):
        await desk.requeue(job_id)
    assert await state_of(store, job_id) is state


@pytest.mark.parametrize("state", sorted(FINAL))
async def test_a_finished_job_cannot_be_cancelled_or_run_now(store: Store, desk: Desk, state: JobState) -> None:
    job_id = await job_in(state, store)
    with pytest.raises(ConflictError, match=f"it is {state}"):
        await desk.cancel(job_id)
    with pytest.raises(ConflictError, match=f"it is {state}"):
        await desk.run_now(job_id)


@pytest.mark.parametrize("state", sorted(PARKED))
async def test_run_now_makes_a_parked_job_ready(store: Store, desk: Desk, state: JobState) -> None:
    job_id = await job_in(state, store)
    assert (await desk.run_now([job_id])).ids == (job_id,)
    assert await state_of(store, job_id) is JobState.READY


async def test_cancelling_a_running_job_asks_it_to_stop_once(store: Store, desk: Desk) -> None:
    claim = await start(store)
    waiting = await enqueue(store)
    changed = await desk.cancel([claim.job_id, waiting], why="wrong address")
    assert set(changed.ids) == {claim.job_id, waiting}
    assert changed.asked == (claim.job_id,)
    with pytest.raises(ConflictError, match="asked to stop before"):
        await desk.cancel(claim.job_id)


async def test_of_many_ids_each_that_was_left_is_reported_with_the_reason(store: Store, desk: Desk) -> None:
    dead = await job_in(JobState.DEAD, store)
    ready = await enqueue(store)
    missing = new_job_id()
    changed = await desk.requeue([dead, ready, missing, dead])
    assert (changed.ids, changed.not_found) == ((dead,), (missing,))
    assert [(left.id, left.state) for left in changed.unchanged] == [(ready, JobState.READY)]


async def test_ids_without_a_job_are_listed(desk: Desk) -> None:
    missing = [new_job_id(), new_job_id()]
    with pytest.raises(NotFoundError, match=f"{missing[0]}, {missing[1]}"):
        await desk.purge(missing)


async def test_ids_with_which_nothing_can_be_done_are_each_reported_with_the_reason(store: Store, desk: Desk) -> None:
    dead, missing = await job_in(JobState.DEAD, store), new_job_id()
    with pytest.raises(NotFoundError, match=f"^there is no job {missing}; job {dead}: it is dead; only scheduled, "):
        await desk.cancel([dead, missing])


async def test_no_ids_are_refused(desk: Desk) -> None:
    with pytest.raises(ArgumentError, match="at least one job"):
        await desk.cancel([])


async def test_requeue_says_when_a_unique_key_is_held(store: Store, desk: Desk) -> None:
    dead = await job_in(JobState.DEAD, store, unique=a_key())
    await enqueue(store, unique=a_key())
    with pytest.raises(ConflictError, match="unique key"):
        await desk.requeue(dead)


async def test_a_filter_without_states_means_dead_letters_for_requeue_and_purge(store: Store, desk: Desk) -> None:
    succeeded = await job_in(JobState.SUCCEEDED, store)
    dead = await job_in(JobState.DEAD, store)
    assert (await desk.purge(JobFilter(kind="greet"))).ids == (dead,)
    assert (await desk.requeue(JobFilter(kind="greet"))).ids == ()
    assert (await desk.requeue(JobFilter(states=frozenset({JobState.SUCCEEDED})))).ids == (succeeded,)


async def test_a_filter_that_asks_for_the_impossible_is_refused(desk: Desk) -> None:
    with pytest.raises(ArgumentError, match="running cannot be requeued"):
        await desk.requeue(JobFilter(states=frozenset({JobState.RUNNING, JobState.DEAD})))


async def test_a_filter_is_worked_off_in_batches(store: Store, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_commands, "_JOBS_PER_CALL", 3)
    await many_dead(store, 10)
    changed = await desk.requeue(JobFilter(kind="greet"))
    assert len(changed.ids) == 10
    assert not changed.more
    assert (await desk.overview()).total(JobState.READY) == 10


@pytest.mark.parametrize("batch", [2, 3, 100])
async def test_the_limit_of_a_command_holds_over_its_batches(
    store: Store, desk: Desk, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    monkeypatch.setattr(job_commands, "_JOBS_PER_CALL", batch)
    await many_dead(store, 7)
    changed = await desk.purge(JobFilter(), limit=4)
    assert changed.ids == tuple(numbered_id(number) for number in (6, 5, 4, 3))
    assert changed.more
    rest = await desk.purge(JobFilter(), limit=3)
    assert (len(rest.ids), rest.more) == (3, False)
    with pytest.raises(ArgumentError, match="limit"):
        await desk.purge(JobFilter(), limit=0)


async def test_jobs_that_cannot_be_requeued_do_not_hold_up_those_behind_them(
    store: Store, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_commands, "_JOBS_PER_CALL", 2)
    free = await job_in(JobState.DEAD, store, id=numbered_id(1))
    stuck = [
        await job_in(JobState.DEAD, store, id=numbered_id(number), unique=a_key(f"k{number}")) for number in (2, 3, 4)
    ]
    for number in (2, 3, 4):
        await enqueue(store, unique=a_key(f"k{number}"), queue="other")
    changed = await desk.requeue(JobFilter())
    assert changed.ids == (free,)
    assert {left.id for left in changed.unchanged} == set(stuck)


async def test_a_preview_changes_nothing_and_says_the_same(store: Store, desk: Desk) -> None:
    dead = await job_in(JobState.DEAD, store)
    claim = await start(store)
    parked = await enqueue(store, delay=HOUR)
    missing = new_job_id()
    foreseen = [
        (await desk.preview(REQUEUE, JobFilter())).ids,
        (await desk.preview(RUN_NOW, [parked, missing])).ids,
        (await desk.preview(CANCEL, [claim.job_id])).asked,
    ]
    assert foreseen == [(dead,), (parked,), (claim.job_id,)]
    assert await state_of(store, dead) is JobState.DEAD
    assert (await desk.requeue(JobFilter())).ids == (dead,)
    with pytest.raises(NotFoundError):
        await desk.preview(PURGE, missing)


async def test_purging_dead_letters_by_id_spares_what_is_not_dead(store: Store, desk: Desk) -> None:
    succeeded = await job_in(JobState.SUCCEEDED, store)
    with pytest.raises(ConflictError, match="it is succeeded"):
        await desk.act(PURGE_DEAD, succeeded)
    assert await state_of(store, succeeded) is JobState.SUCCEEDED
    assert (await desk.purge(succeeded)).ids == (succeeded,)


async def test_every_command_is_in_the_audit_trail_under_the_actors_name(
    store: Store, desk: Desk, engine_url: str
) -> None:
    job_id = await enqueue(store, delay=HOUR)
    await desk.run_now(job_id)
    await desk.cancel(job_id)
    await desk.requeue(job_id)
    await desk.cancel(job_id)
    await desk.purge(job_id)
    table = "perdure_audit" if engine_url.startswith("sqlite") else "audit"
    trail = query(engine_url, f"SELECT actor, action FROM {table} ORDER BY id")
    assert {actor for actor, _ in trail} == {"ada"}
    assert len(trail) == 5


async def test_ages_are_counted_by_the_databases_clock(desk: Desk, clock: ManualClock) -> None:
    clock.move(timedelta(days=3))
    assert await desk.now() == clock.now()


async def test_a_reason_with_what_no_database_takes_is_kept_without_it(store: Store, desk: Desk) -> None:
    job_id = await enqueue(store)
    await desk.cancel(job_id, why="a\0b\ud800")
    assert "ab" in (await show(store, job_id)).reason


@pytest.mark.parametrize(("said", "field"), [({"approved": "no"}, "approved"), ({"approved": True, "note": 7}, "note")])
async def test_an_answer_that_is_none_is_refused_by_name_and_another_can_be_given(
    said: Any, field: str, store: Store, desk: Desk
) -> None:
    """The first answer is kept for good: one that the job cannot read would be its end."""
    job_id = await enqueue(store)
    with pytest.raises(ArgumentError, match=f"^{field} must be ") as refused:
        await desk.answer(job_id, "refund", **said)
    assert refused.value.field == field
    assert (await desk.answer(job_id, "refund", approved=False)).approved is False


async def test_a11_a_list_by_number_says_whether_there_is_more(store: Store, desk: Desk) -> None:
    await many_dead(store, 5)
    first = await desk.jobs(JobFilter(), Page(limit=2, number=1))
    assert [job.id for job in first.jobs] == [numbered_id(4), numbered_id(3)]
    assert first.next == numbered_id(3)
    last = await desk.dead_letters(JobFilter(), Page(limit=2, number=3))
    assert ([job.id for job in last.jobs], last.next) == ([numbered_id(0)], None)
    full = await desk.jobs(JobFilter(), Page(limit=5, number=1))
    assert (len(full.jobs), full.next) == (5, None)
    assert (await desk.jobs(JobFilter(), Page(limit=2, number=4))).jobs == ()


async def test_jobs_are_counted_at_the_desk(store: Store, desk: Desk) -> None:
    await many_dead(store, 3, kind="mail")
    await enqueue(store, kind="text")
    assert await desk.count() == Tally(jobs=4)
    assert await desk.count(JobFilter(states="dead"), cap=2) == Tally(jobs=2, capped=True)
    assert await desk.count_by("kind") == [Tally(jobs=3, kind="mail"), Tally(jobs=1, kind="text")]
    assert await desk.count_by("state", which=JobFilter(kind="text")) == [Tally(jobs=1, state=JobState.READY)]
    with pytest.raises(ArgumentError, match="by is missing"):
        await desk.count_by()


async def test_a11_jobs_are_marked_one_by_one_or_by_a_filter(store: Store, desk: Desk) -> None:
    await many_dead(store, 3)
    running = (await start(store, queue="other")).job_id
    assert await desk.mark(numbered_id(1), "read") == Changed(ids=(numbered_id(1),))
    assert [job.id for job in (await desk.dead_letters(JobFilter(marked=False))).jobs] == [
        numbered_id(2),
        numbered_id(0),
    ]
    assert await desk.mark(running, "seen") == Changed(ids=(running,))
    assert (await desk.mark(JobFilter(states="dead"), "read")).ids == tuple(numbered_id(n) for n in (2, 1, 0))
    assert (await desk.mark(JobFilter(mark="read"), None)).ids == tuple(numbered_id(n) for n in (2, 1, 0))
    assert await desk.count(JobFilter(marked=True)) == Tally(jobs=1)
    with pytest.raises(NotFoundError):
        await desk.mark(new_job_id(), "read")
    with pytest.raises(ArgumentError, match="mark must be 1 to 50 printable"):
        await desk.mark(running, "x" * 51)


async def test_what_is_no_filter_is_refused_at_the_desk(desk: Desk) -> None:
    wrong: Any = {"states": "dead"}
    for asked in (desk.jobs, desk.dead_letters, desk.count):
        with pytest.raises(ArgumentError, match="which must be a JobFilter"):
            await asked(wrong)
    with pytest.raises(ArgumentError, match="page must be a Page"):
        await desk.jobs(JobFilter(), 3)  # type: ignore[arg-type]


async def test_the_audit_trail_is_read_and_added_to_at_the_desk(store: Store, desk: Desk) -> None:
    job_id = await enqueue(store)
    for number in range(3):
        await desk.record("reviewed", job=job_id, details={"number": number})
    first = await desk.audit(job=job_id, actor="ada", action="reviewed", limit=2)
    assert [entry.details["number"] for entry in first.entries] == [2, 1]
    assert first.next == first.entries[-1].id
    last = await desk.audit(job=job_id, limit=2, before=first.next)
    assert ([entry.details["number"] for entry in last.entries], last.next) == ([0], None)
    now = await desk.now()
    assert (await desk.audit(since=now + HOUR)).entries == (await desk.audit(until=now - HOUR)).entries == ()


@pytest.mark.parametrize(
    ("field", "asked"),
    [
        ("limit", {"limit": 0}),
        ("limit", {"limit": 501}),
        ("before", {"before": "x"}),
        ("actor", {"actor": ""}),
        ("action", {"action": 3}),
        ("since", {"since": "yesterday"}),
        ("until", {"until": datetime(2026, 3, 1)}),  # noqa: DTZ001 - the point
    ],
)
async def test_what_the_audit_trail_cannot_be_asked_is_refused_by_name(
    desk: Desk, field: str, asked: dict[str, Any]
) -> None:
    with pytest.raises(ArgumentError) as refused:
        await desk.audit(**asked)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("field", "entry"),
    [
        ("action", {"action": ""}),
        ("action", {"action": "x" * 101}),
        ("details", {"details": [1]}),
        ("details", {"details": {"a": float("nan")}}),
        ("details", {"details": {"a": object()}}),
        ("details", {"details": {"a": "\x00"}}),
        ("details", {"details": {"a": "\ud800"}}),
        ("details", {"details": {"a": "x" * 17_000}}),
    ],
    ids=["empty", "long", "list", "nan", "object", "nul", "surrogate", "large"],
)
async def test_what_cannot_be_an_entry_is_refused_by_name(desk: Desk, field: str, entry: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError) as refused:
        await desk.record(**{"action": "reviewed"} | entry)
    assert refused.value.field == field
    assert (await desk.audit()).entries == ()


def test_the_name_of_the_engine_is_its_own(store: Store) -> None:
    with pytest.raises(ArgumentError, match="actor must not be 'system'"):
        Desk(store, "system")


async def test_overdue_jobs_are_listed_oldest_due_first(store: Store, desk: Desk, clock: ManualClock) -> None:
    for number, delay in enumerate((3, 1, 2, 60)):
        await store.insert([a_job(id=numbered_id(number), delay=timedelta(seconds=delay))])
    dead = await job_in(JobState.DEAD, store)
    clock.move(timedelta(seconds=12))

    assert [one.job_id for one in await desk.overdue()] == [numbered_id(number) for number in (1, 2, 0)]
    assert [one.job_id for one in await desk.overdue(limit=1)] == [numbered_id(1)]
    assert [one.job_id for one in await desk.overdue("10s")] == [numbered_id(1), numbered_id(2)]
    assert dead not in {one.job_id for one in await desk.overdue()}
    for wrong in (0, 10_001):
        with pytest.raises(ArgumentError, match=f"limit must be from 1 to 10000, got {wrong}"):
            await desk.overdue(limit=wrong)
    with pytest.raises(ArgumentError, match="by"):
        await desk.overdue("soon")
