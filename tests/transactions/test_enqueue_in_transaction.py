"""A job enqueued through the caller's own connection commits with the caller's rows, or not at all."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from tests.support.callers import Caller

from perdure import ArgumentError, DuplicateJobError, Intake, JobState, OnConflict, Unique, WorkerSettings
from perdure.domain.jobs.ids import new_job_id

if TYPE_CHECKING:
    from tests.transactions.conftest import Setting

REJECTING = Unique(by=("name",), on_conflict=OnConflict.REJECT)


async def test_the_job_is_there_once_the_caller_commits_and_not_before(setting: Setting) -> None:
    async with setting.open() as caller:
        await setting.note(caller, "order")
        handle = await setting.enqueue(caller, "Ada")
        assert handle.is_new
        assert await setting.job(handle) is None
        await caller.commit()
    view = await setting.job(handle)
    assert view is not None
    assert view.state is JobState.READY
    assert await setting.jobs() == 1
    assert await setting.notes() == ["order"]


async def test_a_job_enqueued_before_the_callers_first_write_belongs_to_the_transaction(setting: Setting) -> None:
    async with setting.open() as caller:
        handle = await setting.enqueue(caller, "Ada")
        await setting.note(caller, "order")
        assert await setting.job(handle) is None
        await caller.commit()
    assert await setting.job(handle) is not None
    assert await setting.notes() == ["order"]


async def test_nothing_is_left_when_the_caller_rolls_back(setting: Setting) -> None:
    async with setting.open() as caller:
        await setting.enqueue(caller, "Ada")
        await setting.note(caller, "order")
        await setting.enqueue(caller, "Grace", delay="1h")
        await caller.rollback()
    assert await setting.jobs() == 0
    assert await setting.notes() == []


async def test_the_same_id_twice_is_one_job(setting: Setting) -> None:
    job_id = new_job_id()
    async with setting.open() as caller:
        first = await setting.enqueue(caller, "Ada", id=job_id)
        again = await setting.enqueue(caller, "Ada", id=job_id)
        await caller.commit()
    assert (first.intake, again.intake) == (Intake.NEW, Intake.EXISTING)
    assert first.id == again.id == job_id
    assert await setting.jobs() == 1


async def test_an_id_of_another_kind_is_refused_and_leaves_the_transaction_usable(setting: Setting) -> None:
    there = await setting.greet_once.using(id=new_job_id()).enqueue("Ada")
    async with setting.open() as caller:
        await setting.note(caller, "before")
        with pytest.raises(ArgumentError, match="belongs to a job of kind greet_once"):
            await setting.enqueue(caller, "Ada", id=there.id)
        with pytest.raises(ArgumentError, match="belongs to a job of kind greet_once"):
            await setting.enqueue_many(caller, [setting.greet.call("B"), setting.greet.using(id=there.id).call("A")])
        await setting.note(caller, "after")
        await caller.commit()
    assert await setting.notes() == ["after", "before"]
    assert await setting.jobs() == 1


async def test_f4_a_ref_is_one_job_and_leaves_the_transaction_usable(setting: Setting) -> None:
    there = await setting.greet_once.using(ref="JB_1").enqueue("Ada")
    async with setting.open() as caller:
        await setting.note(caller, "before")
        with pytest.raises(ArgumentError, match="ref 'JB_1' belongs to a job of kind greet_once"):
            await setting.enqueue(caller, "Ada", ref="JB_1")
        first = await setting.enqueue(caller, "Ada", ref="JB_2", timeout="1m")
        again = await setting.enqueue(caller, "Ada", ref="JB_2")
        await caller.commit()
    assert (first.intake, again.intake, again.id) == (Intake.NEW, Intake.EXISTING, first.id)
    view = await setting.job(first)
    assert view is not None
    assert (view.ref, view.settings) == ("JB_2", '{"timeout":"PT60S"}')
    assert await setting.notes() == ["before"]
    assert await setting.jobs() == 2, there


async def test_a_unique_conflict_answers_with_the_job_that_is_there(setting: Setting) -> None:
    there = await setting.greet_once.enqueue("Ada")
    async with setting.open() as caller:
        found = await setting.enqueue(caller, "Ada", unique=Unique(by=("name",)))
        await caller.commit()
    same_kind = await setting.greet_once.enqueue("Ada")
    assert same_kind.id == there.id
    assert found.is_new, "another kind has another key"
    async with setting.open() as caller:
        again = await setting.enqueue(caller, "Ada", unique=Unique(by=("name",)))
        await setting.note(caller, "order")
        await caller.commit()
    assert (again.id, again.intake) == (found.id, Intake.EXISTING)
    assert await setting.notes() == ["order"]
    assert await setting.jobs() == 2


async def test_a_rejected_job_leaves_the_transaction_usable(setting: Setting) -> None:
    async with setting.open() as caller:
        await setting.note(caller, "before")
        await setting.enqueue(caller, "Ada", unique=REJECTING)
        with pytest.raises(DuplicateJobError):
            await setting.enqueue(caller, "Ada", unique=REJECTING)
        await setting.note(caller, "after")
        handle = await setting.enqueue(caller, "Grace", unique=REJECTING)
        await caller.commit()
    assert await setting.notes() == ["after", "before"]
    assert await setting.job(handle) is not None
    assert await setting.jobs() == 2


async def test_a_batch_with_one_rejected_job_leaves_nothing(setting: Setting) -> None:
    there = await setting.greet_once.enqueue("Ada")
    await setting.greet.using(unique=REJECTING).enqueue("Ada")
    async with setting.open() as caller:
        calls = [setting.greet.call("Grace"), setting.greet.using(unique=REJECTING).call("Ada")]
        with pytest.raises(DuplicateJobError):
            await setting.enqueue_many(caller, calls)
        await setting.note(caller, "after")
        await caller.commit()
    assert await setting.notes() == ["after"]
    assert await setting.jobs() == 2
    assert await setting.job(there) is not None


async def test_a_replacing_job_replaces_when_the_caller_commits(setting: Setting) -> None:
    replacing = Unique(by=("name",), on_conflict=OnConflict.REPLACE)
    first = await setting.greet.using(unique=replacing, priority=7).enqueue("Ada")
    for end, priority in (("rollback", 7), ("commit", 2)):
        async with setting.open() as caller:
            handle = await setting.enqueue(caller, "Ada", unique=replacing, priority=2)
            assert (handle.id, handle.intake) == (first.id, Intake.REPLACED)
            await getattr(caller, end)()
        view = await setting.job(first)
        assert view is not None
        assert view.priority == priority


async def test_many_jobs_go_in_together_and_keep_their_order(setting: Setting) -> None:
    known = await setting.greet.using(id=new_job_id()).enqueue("known")
    calls = [setting.greet.call(f"name {number}") for number in range(30)]
    calls.insert(10, setting.greet.using(id=known.id).call("known"))
    calls.insert(20, setting.greet.using(delay="1h").call("later"))
    async with setting.open() as caller:
        assert await setting.enqueue_many(caller, []) == []
        handles = await setting.enqueue_many(caller, iter(calls))
        await setting.note(caller, "order")
        assert await setting.jobs() == 1
        await caller.commit()
    assert [handle.id for handle in handles] == [call.job.id for call in calls]
    assert [number for number, handle in enumerate(handles) if not handle.is_new] == [10]
    assert await setting.jobs() == 32
    assert await setting.notes() == ["order"]


async def test_hostile_text_arrives_as_it_was_sent(setting: Setting) -> None:
    name = "'; DROP TABLE job; -- %s %(name)s :name ? $1 \\ \" {curly} 漢字 🦩"
    async with setting.open() as caller:
        handle = await setting.enqueue(caller, name, tags=["a,b", '"{}'], meta={"%": "$1"})
        await caller.commit()
    view = await setting.job(handle)
    assert view is not None
    positional, _ = setting.greet.kind.signature.decode(view.args)
    assert list(positional) == [name]
    assert view.tags == ("a,b", '"{}')


async def test_a_waiting_worker_is_woken_by_the_callers_commit(setting: Setting) -> None:
    worker = await setting.app.worker(WorkerSettings(poll=timedelta(minutes=10)))
    running = asyncio.create_task(worker.run())
    await worker.opened.wait()
    try:
        async with setting.open() as caller:
            handle = await setting.enqueue(caller, "Ada")
            await caller.commit()
        await handle.result(timeout="20s")
    finally:
        worker.stop()
        await running


async def test_connections_that_race_for_one_key_make_one_job(setting: Setting) -> None:
    if not setting.app.url.startswith("postgresql"):
        pytest.skip("SQLite lets one transaction write at a time")

    async def contend(caller: Caller) -> Intake:
        prepared = setting.greet_once.using(connection=caller.connection)
        if caller.blocking:
            handle = await asyncio.to_thread(prepared.enqueue_sync, "Ada")
        else:
            handle = await prepared.enqueue("Ada")
        await caller.commit()
        return handle.intake

    async with setting.open() as one, setting.open() as two, setting.open() as three:
        async with asyncio.timeout(20):
            intakes = await asyncio.gather(contend(one), contend(two), contend(three))
    assert sorted(intakes) == [Intake.EXISTING, Intake.EXISTING, Intake.NEW]
    assert await setting.jobs() == 1
