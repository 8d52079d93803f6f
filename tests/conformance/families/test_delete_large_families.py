"""CommandStore.delete of a parent with many children: in several transactions, between which others get in (C6)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.builders.families import CHILDREN, KEY, awaiting, claim_children, offspring, spawn, standing
from tests.support.builders.jobs import apply, claim_one, employ, enqueue, only, show, start

from perdure.domain.flows.flow import OnEnd
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import FINAL, JobState
from perdure.domain.operate.audit import By
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.flows import settling as postgres_settling
from perdure.engines.postgres.operate.commands import commands as postgres_commands
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.flows import settling as sqlite_settling
from perdure.engines.sqlite.operate.commands import commands as sqlite_commands
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page

AT_ONCE = 10
MANY = 35


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for commands in (postgres_commands, sqlite_commands):
        monkeypatch.setattr(commands, "CHILDREN_AT_ONCE", AT_ONCE)


class CutShortError(Exception):
    """Somebody has pulled the plug."""


class Counted:
    """How many transactions there were, and what is to happen after the one of a number."""

    def __init__(self) -> None:
        self.transactions = 0
        self.then: Any = None


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """Count the transactions of either engine that write."""
    count = Counted()
    for owner, name in ((Database, "write"), (Pool, "transaction")):
        plain = getattr(owner, name)

        async def counting(self: Any, work: Any, plain: Any = plain) -> Any:
            answer = await plain(self, work)
            count.transactions += 1
            if count.then is not None:
                then, count.then = count.then, None
                await then()
            return answer

        monkeypatch.setattr(owner, name, counting)
    return count


async def waiting_parent(store: Store, **terms: Any) -> tuple[Claim, list[JobId]]:
    parent = await start(store)
    family = await spawn(store, parent, *offspring(MANY), **terms)
    await apply(store, awaiting(parent))
    return parent, [child.id for child in family.children]


async def test_c6_children_are_cancelled_some_at_a_time(store: Store, counted: Counted) -> None:
    parent, children = await waiting_parent(store, on_end=OnEnd.KEEP)
    before = counted.transactions
    assert await store.delete(only(parent.job_id), By("ops"), 1) == [parent.job_id]
    assert counted.transactions - before >= MANY // AT_ONCE + 2
    assert await store.job(parent.job_id) is None
    assert await store.children(parent.job_id, KEY) == []
    assert await store.families(parent.job_id) == []
    assert {await standing(store, child) for child in children} == {("cancelled", "cancelled: parent job deleted")}


async def test_others_get_in_between_and_the_parent_does_not_run_meanwhile(store: Store, counted: Counted) -> None:
    parent, _ = await waiting_parent(store)
    worker_id = await employ(store)
    seen: list[Any] = []

    async def meanwhile() -> None:
        other = await enqueue(store)
        claim = await claim_one(store, worker_id)
        view = await show(store, parent.job_id)
        seen.extend((claim.job_id == other, view.state, len(await claim_children(store)) > 0))

    counted.then = meanwhile
    await store.delete(only(parent.job_id), By("ops"), 1)
    assert seen == [True, JobState.CANCELLED, True]
    left = await store.jobs(JobFilter(queue=CHILDREN), Page(limit=100))
    assert {view.state for view in left} == {JobState.CANCELLED}


async def test_a_delete_that_is_cut_short_is_finished_by_the_next(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then the parent is there, and nothing runs for it that nobody would find."""
    parent, children = await waiting_parent(store)
    rounds = 0
    with monkeypatch.context() as patch:
        for owner in (postgres_settling.Settling, sqlite_settling.Settling):
            plain = getattr(owner, "cancel_some")  # noqa: B009 - of two classes

            def fail(self: Any, *given: Any, plain: Any = plain) -> Any:
                nonlocal rounds
                rounds += 1
                if rounds > 1:
                    raise CutShortError
                return plain(self, *given)

            patch.setattr(owner, "cancel_some", fail)
        with pytest.raises(CutShortError):
            await store.delete(only(parent.job_id), By("ops"), 1)
    assert (await show(store, parent.job_id)).state is JobState.CANCELLED
    states = [(await show(store, child)).state for child in children]
    assert 0 < sum(state in FINAL for state in states) < MANY
    assert await store.delete(only(parent.job_id), By("ops"), 1) == [parent.job_id]
    assert {(await show(store, child)).state for child in children} == {JobState.CANCELLED}


async def test_a_running_parent_is_reported_and_its_own_parent_counts_it(store: Store) -> None:
    top = await start(store)
    [middle] = offspring(1)
    await spawn(store, top, middle)
    claim = (await claim_children(store))[middle.id]
    await spawn(store, claim, *offspring(MANY))
    await apply(store, awaiting(top))
    assert await store.delete(only(middle.id), By("ops"), 1) == [middle.id]
    [child] = await store.children(top.job_id, KEY)
    assert (child.fate, child.error) == (JobState.CANCELLED, "job deleted")
    assert (await show(store, top.job_id)).state is JobState.READY


async def test_a_filter_by_state_means_the_jobs_that_matched_at_the_beginning(store: Store) -> None:
    parent, _ = await waiting_parent(store)
    which = JobFilter(states=frozenset({JobState.WAITING}))
    assert await store.delete(which, By("ops"), 10) == [parent.job_id]
    assert await store.job(parent.job_id) is None
