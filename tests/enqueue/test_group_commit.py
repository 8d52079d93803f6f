"""Concurrent enqueues share a commit, and each caller gets its own answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from tests.support.builders.jobs import a_job, a_key

from perdure.domain.jobs.job import Intake, NewJob, OnConflict, Receipt
from perdure.enqueue.group_commit import GroupCommit
from perdure.errors import ArgumentError, DuplicateJobError, StoreLocked, StoreRefused, StoreUnavailable
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page

PATIENCE = timedelta(seconds=5)


class Counting:
    """A real store that counts its transactions and can be made to fail before or after the commit."""

    def __init__(self, store: Store, *failures: Exception, after_commit: bool = False) -> None:
        self._store = store
        self._failures = list(failures)
        self._after_commit = after_commit
        self.batches: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def insert(self, jobs: Sequence[NewJob]) -> list[Receipt]:
        self.batches.append(len(jobs))
        failure = self._failures.pop(0) if self._failures else None
        if failure and not self._after_commit:
            raise failure
        receipts = await self._store.insert(jobs)
        if failure:
            raise failure
        return receipts


class Slow(Counting):
    """The same, and nothing is begun before the gate is opened."""

    def __init__(self, store: Store, *failures: Exception) -> None:
        super().__init__(store, *failures)
        self.gate = asyncio.Event()

    async def insert(self, jobs: Sequence[NewJob]) -> list[Receipt]:
        await self.gate.wait()
        return await super().insert(jobs)


async def stored(store: Store) -> int:
    return len(await store.jobs(JobFilter(), Page(limit=500)))


async def test_sixty_four_callers_pay_for_few_commits(store: Store) -> None:
    counting = Counting(store)
    group_commit = GroupCommit(counting, PATIENCE)
    receipts = await asyncio.gather(*(group_commit.put(a_job()) for _ in range(64)))
    assert {receipt.intake for receipt in receipts} == {Intake.NEW}
    assert len({receipt.job_id for receipt in receipts}) == 64
    assert len(counting.batches) <= 2
    assert await stored(store) == 64


async def test_the_answers_go_to_those_who_asked(store: Store) -> None:
    group_commit = GroupCommit(store, PATIENCE)
    jobs = [a_job() for _ in range(20)]
    receipts = await asyncio.gather(*(group_commit.put(job) for job in jobs))
    assert [receipt.job_id for receipt in receipts] == [job.id for job in jobs]


async def test_only_the_one_who_is_refused_hears_of_it(store: Store) -> None:
    group_commit = GroupCommit(store, PATIENCE)
    held = a_key()
    await group_commit.put(a_job(unique=held))
    rejected = a_job(unique=a_key(on_conflict=OnConflict.REJECT))
    answers = await asyncio.gather(
        group_commit.put(a_job()), group_commit.put(rejected), group_commit.put(a_job()), return_exceptions=True
    )
    assert isinstance(answers[1], DuplicateJobError)
    assert [type(answers[0]), type(answers[2])] == [Receipt, Receipt]


async def test_a_batch_that_is_refused_is_stored_job_by_job(store: Store) -> None:
    group_commit = GroupCommit(Counting(store, StoreRefused("one of them is poison")), PATIENCE)
    receipts = await asyncio.gather(*(group_commit.put(a_job()) for _ in range(5)))
    assert len(receipts) == await stored(store) == 5


async def test_a_batch_that_fails_in_an_unforeseen_way_leaves_those_behind_it_alone(store: Store) -> None:
    slow = Slow(store, ZeroDivisionError())
    group_commit = GroupCommit(slow, PATIENCE)
    first = [asyncio.ensure_future(group_commit.put(a_job())) for _ in range(2)]
    for _ in range(3):
        await asyncio.sleep(0)
    second = [asyncio.ensure_future(group_commit.put(a_job())) for _ in range(2)]
    await asyncio.sleep(0)
    slow.gate.set()
    answers = await asyncio.wait_for(asyncio.gather(*first, *second, return_exceptions=True), 30)
    assert [type(answer) for answer in answers] == [ZeroDivisionError, ZeroDivisionError, Receipt, Receipt]
    assert slow.batches == [2, 2]


async def test_callers_that_wait_when_the_loop_ends_get_an_error(store: Store) -> None:
    group_commit = GroupCommit(Slow(store), PATIENCE)
    tasks = [asyncio.ensure_future(group_commit.put(a_job())) for _ in range(2)]
    for _ in range(3):
        await asyncio.sleep(0)
    tasks.append(asyncio.ensure_future(group_commit.put(a_job())))
    await asyncio.sleep(0)
    assert group_commit._task is not None
    group_commit._task.cancel()
    answers = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 30)
    assert [type(answer) for answer in answers] == [asyncio.CancelledError] * 3


async def test_a_spoilt_job_is_refused_alone(store: Store) -> None:
    """Whatever the caller did wrong with one job is none of the others' business."""
    group_commit = GroupCommit(store, PATIENCE)
    jobs = [a_job(), a_job(kind="half \ud800"), a_job()]
    answers = await asyncio.gather(*(group_commit.put(job) for job in jobs), return_exceptions=True)
    assert [type(answer) for answer in answers] == [Receipt, ArgumentError, Receipt]
    assert await stored(store) == 2


@pytest.mark.parametrize("after_commit", [False, True])
async def test_g1_a_lost_answer_is_asked_for_again_and_gives_one_job(store: Store, after_commit: bool) -> None:
    lost = (StoreUnavailable("connection lost"), StoreUnavailable("connection lost"))
    counting = Counting(store, *lost, after_commit=after_commit)
    receipt = await GroupCommit(counting, PATIENCE).put(a_job())
    assert receipt.intake is (Intake.EXISTING if after_commit else Intake.NEW)
    assert (await stored(store), len(counting.batches)) == (1, 3)


async def test_patience_ends_and_says_what_to_do(store: Store) -> None:
    gone = [StoreUnavailable("connection refused")] * 20
    group_commit = GroupCommit(Counting(store, *gone), timedelta(milliseconds=200))
    job = a_job()
    with pytest.raises(StoreUnavailable, match=f"{job.id}.*enqueue again with the same id"):
        await group_commit.put(job)


async def test_a_caller_that_gives_up_leaves_the_others_alone(store: Store) -> None:
    group_commit = GroupCommit(store, PATIENCE)
    tasks = [asyncio.ensure_future(group_commit.put(a_job())) for _ in range(5)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    tasks[3].cancel()
    answers = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 30)
    assert [isinstance(answer, Receipt) for answer in answers] == [False, True, True, False, True]
    assert (await group_commit.put(a_job())).intake is Intake.NEW


async def test_no_caller_waits_for_long_behind_a_batch_that_is_stuck(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What keeps the first may keep it for long, and ends with an error that concerns no other caller."""
    monkeypatch.setattr("perdure.enqueue.group_commit._HELD_BACK_SECONDS", 0.01)
    stuck = Stuck(store)
    group_commit = GroupCommit(stuck, PATIENCE)
    first = asyncio.create_task(group_commit.put(a_job()))
    await stuck.begun.wait()
    others = [asyncio.create_task(group_commit.put(a_job())) for _ in range(3)]
    receipts = await asyncio.wait_for(asyncio.gather(*others), 30)
    assert [receipt.intake for receipt in receipts] == [Intake.NEW] * 3
    assert not first.done()
    stuck.gate.set()
    with pytest.raises(StoreLocked):
        await first
    assert await stored(store) == 3


async def test_a_lock_that_was_waited_for_is_not_waited_for_again(store: Store) -> None:
    counting = Counting(store, StoreLocked("waited 30 s"))
    with pytest.raises(StoreLocked, match=r"^waited 30 s$"):
        await GroupCommit(counting, PATIENCE).put(a_job())
    assert counting.batches == [1]


class Stuck(Counting):
    """The first call is refused for a lock, once the gate is opened."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.begun = asyncio.Event()
        self.gate = asyncio.Event()

    async def insert(self, jobs: Sequence[NewJob]) -> list[Receipt]:
        if not self.begun.is_set():
            self.begun.set()
            await self.gate.wait()
            raise StoreLocked("waited 30 s")
        return await super().insert(jobs)
