"""IntakeStore.insert: what comes in, in which order, and what is found there already."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from tests.support.builders.jobs import (
    HOSTILE,
    HOUR,
    INSTANT,
    MINUTE,
    SECOND,
    a_job,
    a_key,
    claim_one,
    claim_some,
    employ,
    enqueue,
    job_in,
    numbered_id,
    show,
    state_of,
)

from perdure.clock import ManualClock
from perdure.domain.jobs.ids import new_job_id
from perdure.domain.jobs.job import Intake, OnConflict
from perdure.domain.jobs.states import JobState, Reason
from perdure.errors import ArgumentError, DuplicateJobError
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page

ANY_STATE = list(JobState)


async def test_plain_job_is_ready_at_once_and_shown_as_it_came(store: Store, clock: ManualClock) -> None:
    job = a_job(queue="mail", priority=2, max_attempts=5, crash_limit=2, tags=("eu", "vip"), meta='{"trace":"abc"}')
    [receipt] = await store.insert([job])
    assert (receipt.job_id, receipt.intake) == (job.id, Intake.NEW)
    view = await show(store, job.id)
    assert (view.id, view.kind, view.queue, view.priority, view.args) == (job.id, "greet", "mail", 2, job.args)
    assert (view.tags, view.meta, view.max_attempts) == (("eu", "vip"), '{"trace":"abc"}', 5)
    assert (view.state, view.reason) == (JobState.READY, Reason.ENQUEUED)
    assert view.created_at == view.since == clock.now()
    assert (view.due_at, view.started_at, view.finished_at, view.worker) == (None, None, None, None)
    assert (view.failures, view.crashes, view.last_error, view.result, view.warnings) == (0, 0, None, None, ())
    assert (view.unique_key, view.cancel_requested_at) == (None, None)


@pytest.mark.parametrize(
    "options",
    [{}, {"delay": HOUR}, {"fair_key": "a"}, {"unique": a_key()}],
    ids=["plain", "for later", "fair", "unique"],
)
async def test_an_id_of_another_kind_is_refused_and_nothing_of_the_batch_is_stored(
    store: Store, options: dict[str, Any]
) -> None:
    """The caller would take the job that is there for its own, which nobody would ever run."""
    there = a_job(kind="greet", has_own_id=True)
    await store.insert([there])
    other = a_job(id=there.id, kind="send", has_own_id=True, **options)
    refusal = f"id {there.id} belongs to a job of kind greet: choose another for send"
    with pytest.raises(ArgumentError, match=refusal):
        await store.insert([other])
    beside = a_job()
    for batch in ([beside, other], [other, beside], [beside, replace(there, args="{}"), other]):
        with pytest.raises(ArgumentError, match=refusal):
            await store.insert(batch)
    assert await store.job(beside.id) is None
    [receipt, again] = await store.insert([beside, there])
    assert (receipt.intake, again.intake) == (Intake.NEW, Intake.EXISTING)


async def test_two_kinds_cannot_share_an_id_within_a_batch(store: Store) -> None:
    one = a_job(kind="greet", has_own_id=True)
    with pytest.raises(ArgumentError, match="belongs to a job of kind greet: choose another"):
        await store.insert([one, replace(one, kind="send"), one])
    assert await store.job(one.id) is None


async def test_nothing_handed_in_is_nothing_done(store: Store) -> None:
    assert await store.insert([]) == []


async def test_answers_keep_the_order_of_the_batch(store: Store) -> None:
    known = await enqueue(store)
    jobs = [a_job(id=numbered_id(9)), a_job(id=known), a_job(id=numbered_id(3)), a_job(id=numbered_id(5), delay=HOUR)]
    receipts = await store.insert(jobs)
    assert [receipt.job_id for receipt in receipts] == [job.id for job in jobs]
    assert [receipt.intake for receipt in receipts] == [Intake.NEW, Intake.EXISTING, Intake.NEW, Intake.NEW]


@pytest.mark.parametrize("state", ANY_STATE)
async def test_an_id_that_is_stored_already_changes_nothing(store: Store, state: JobState) -> None:
    job_id = await job_in(state, store)
    before = await show(store, job_id)
    again = a_job(id=job_id, kind="other", args='{"name":"Eve"}', priority=0, tags=("new",), delay=MINUTE)
    [receipt] = await store.insert([again])
    assert (receipt.job_id, receipt.intake) == (job_id, Intake.EXISTING)
    assert await show(store, job_id) == before


async def test_an_id_twice_in_one_batch_is_one_job(store: Store) -> None:
    job = a_job()
    receipts = await store.insert([job, replace(job, args='{"name":"Eve"}')])
    assert [receipt.intake for receipt in receipts] == [Intake.NEW, Intake.EXISTING]
    assert (await show(store, job.id)).args == job.args
    assert len(await store.jobs(JobFilter(), Page())) == 1


async def test_an_id_stored_already_wins_over_a_free_unique_key(store: Store) -> None:
    """Enqueueing again after an unknown commit gives the same job, and takes no key for it."""
    job = a_job()
    await store.insert([job])
    [receipt] = await store.insert([replace(job, unique=a_key("free"))])
    assert (receipt.job_id, receipt.intake) == (job.id, Intake.EXISTING)
    [receipt] = await store.insert([a_job(unique=a_key("free"))])
    assert receipt.intake is Intake.NEW


async def test_the_same_job_with_its_key_handed_in_again_is_existing(store: Store) -> None:
    job = a_job(unique=a_key())
    await store.insert([job])
    [receipt] = await store.insert([job])
    assert (receipt.job_id, receipt.intake) == (job.id, Intake.EXISTING)


async def test_a_delay_schedules_from_the_databases_now(store: Store, clock: ManualClock) -> None:
    view = await show(store, await enqueue(store, delay=timedelta(minutes=10)))
    assert (view.state, view.reason) == (JobState.SCHEDULED, Reason.ENQUEUED)
    assert view.due_at == view.since == clock.now() + timedelta(minutes=10)
    assert view.created_at == clock.now()


async def test_run_at_schedules_only_what_lies_ahead(store: Store, clock: ManualClock) -> None:
    ahead = await show(store, await enqueue(store, run_at=clock.now() + INSTANT))
    assert (ahead.state, ahead.due_at) == (JobState.SCHEDULED, clock.now() + INSTANT)
    for past in (clock.now(), clock.now() - HOUR):
        assert await state_of(store, await enqueue(store, run_at=past)) is JobState.READY


async def test_run_at_of_another_time_zone_is_the_same_instant(store: Store, clock: ManualClock) -> None:
    tokyo = timezone(timedelta(hours=9))
    view = await show(store, await enqueue(store, run_at=(clock.now() + HOUR).astimezone(tokyo)))
    assert view.due_at == clock.now() + HOUR


FIRST_MORNING = datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))
LAST_EVENING = datetime.max.replace(tzinfo=timezone(timedelta(hours=-12)))


@pytest.mark.parametrize("when", [FIRST_MORNING, LAST_EVENING], ids=["first morning", "last evening"])
async def test_a_time_without_a_date_in_utc_delays_no_other_job(
    store: Store, clock: ManualClock, when: datetime
) -> None:
    odd = await enqueue(store, run_at=when)
    soon = await enqueue(store, delay=SECOND)
    clock.move(SECOND)
    await store.promote(10)
    assert await state_of(store, soon) is JobState.READY
    assert {view.id for view in await store.jobs(JobFilter(), Page())} == {soon, odd}


async def test_scheduled_jobs_are_not_claimed(store: Store) -> None:
    await enqueue(store, delay=SECOND)
    assert await claim_some(store, await employ(store)) == []


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_text_goes_in_and_comes_out_unchanged(store: Store, text: str) -> None:
    document = msgspec.json.encode({text: text}).decode()
    job = a_job(kind=text, queue=text, args=document, tags=(text, f"{text}2"), meta=document, unique=a_key(text))
    await store.insert([job])
    view = await show(store, job.id)
    assert (view.kind, view.queue, view.args, view.meta) == (text, text, document, document)
    assert (view.tags, view.unique_key) == ((text, f"{text}2"), text)
    claim = await claim_one(store, await employ(store, name=text, queues=(text,)), text)
    assert (claim.kind, claim.queue, claim.args, claim.tags, claim.meta) == (text, text, document, job.tags, document)
    assert claim.unique is not None
    assert claim.unique.key == text
    assert (await show(store, job.id)).worker == text


@pytest.mark.parametrize("field", ["kind", "queue", "tags", "meta", "args", "unique"])
async def test_a_nul_is_refused_by_name_and_nothing_is_stored(store: Store, field: str) -> None:
    """PostgreSQL cannot keep one, so neither engine does: what is taken is taken everywhere."""
    poison: dict[str, Any] = {"tags": ("fine", "a\0b"), "unique": a_key("a\0b")}
    with pytest.raises(ArgumentError, match=field):
        await store.insert([a_job(), a_job(**{field: poison.get(field, '"a\0b"')})])
    assert await store.jobs(JobFilter(), Page()) == []


async def test_an_escaped_nul_inside_a_document_is_plain_text(store: Store) -> None:
    document = '{"name":"a\\u0000b"}'
    view = await show(store, await enqueue(store, args=document, meta=document))
    assert (view.args, view.meta) == (document, document)


async def test_documents_are_kept_to_the_letter(store: Store) -> None:
    """Whitespace, key order, doubled keys and long numbers are the caller's business."""
    document = '{ "b": 1, "a": 1.10, "a": 12345678901234567890123 }'
    assert (await show(store, await enqueue(store, args=document))).args == document


async def test_large_arguments_come_back_whole(store: Store) -> None:
    document = '"' + "x" * (64 * 1024 - 2) + '"'
    job_id = await enqueue(store, args=document)
    assert (await show(store, job_id)).args == document
    assert (await claim_one(store, await employ(store))).args == document


async def test_a_large_batch_is_stored_in_order(store: Store) -> None:
    jobs = [a_job() for _ in range(2_500)]
    receipts = await store.insert(jobs)
    assert [receipt.job_id for receipt in receipts] == [job.id for job in jobs]
    assert {receipt.intake for receipt in receipts} == {Intake.NEW}
    assert len(await claim_some(store, await employ(store), 5_000)) == 2_500


async def test_a_batch_is_stored_wholly_or_not_at_all(store: Store) -> None:
    await enqueue(store, unique=a_key("held"))
    fine, refused = a_job(), a_job(unique=a_key("held", on_conflict=OnConflict.REJECT))
    with pytest.raises(DuplicateJobError):
        await store.insert([fine, refused, a_job()])
    assert len(await store.jobs(JobFilter(), Page())) == 1
    [receipt] = await store.insert([fine])
    assert receipt.intake is Intake.NEW


async def test_every_priority_is_kept(store: Store) -> None:
    for priority in range(10):
        assert (await show(store, await enqueue(store, priority=priority))).priority == priority


async def test_ids_made_by_others_are_welcome(store: Store) -> None:
    """Any UUID will do, whatever its version."""
    for job_id in (str(uuid.uuid4()), "ffffffff-ffff-ffff-ffff-ffffffffffff", new_job_id()):
        assert (await show(store, await enqueue(store, id=job_id))).id == job_id
