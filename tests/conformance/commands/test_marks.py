"""CommandStore.mark: a word that an application keeps with a job (A11: read, unread)."""

from __future__ import annotations

import pytest
from tests.support.builders.jobs import (
    A_FAILURE,
    HOUR,
    apply,
    claim_one,
    employ,
    enqueue,
    job_in,
    numbered_id,
    only,
    show,
)
from tests.support.databases.behind import query

from perdure.clock import ManualClock
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.operate.audit import By
from perdure.errors import ArgumentError
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Keep, Page


async def found(store: Store, which: JobFilter, page: Page | None = None) -> list[JobId]:
    return [view.id for view in await store.jobs(which, page or Page())]


@pytest.mark.parametrize("state", sorted(JobState))
async def test_a11_a_job_in_any_state_is_marked_and_found_by_its_mark(store: Store, state: JobState) -> None:
    job_id = await job_in(state, store)
    assert (await show(store, job_id)).mark is None
    assert await store.mark(only(job_id), "read", By("ada"), 10) == [job_id]
    view = await show(store, job_id)
    assert (view.mark, view.state) == ("read", state)
    assert await store.jobs(JobFilter(mark="read"), Page()) == [view]
    assert await found(store, JobFilter(marked=True)) == [job_id]
    assert await found(store, JobFilter(mark="unread")) == await found(store, JobFilter(marked=False)) == []


async def test_a_mark_is_replaced_and_taken_away(store: Store) -> None:
    job_id = await enqueue(store)
    for mark in ("read", "flagged", None):
        await store.mark(only(job_id), mark, By("ada"), 10)
        assert (await show(store, job_id)).mark == mark
    assert await found(store, JobFilter(marked=False)) == [job_id]


async def test_who_marks_is_in_the_audit_trail(store: Store, engine_url: str) -> None:
    job_id = await enqueue(store)
    await store.mark(only(job_id), "read", By("ada"), 10)
    assert [tuple(row) for row in query(engine_url, "SELECT actor, action FROM {audit}")] == [("ada", "mark")]


async def test_a_mark_stays_through_retries_and_a_new_life_begins_without(store: Store, clock: ManualClock) -> None:
    """What was read is the end of the former life: should the job die again, nobody has seen that."""
    job_id, worker_id = await enqueue(store), await employ(store)
    await store.mark(only(job_id), "read", By("ada"), 10)
    claim = await claim_one(store, worker_id)
    await apply(store, transition.retrying(claim, Reason.FAILED, A_FAILURE, HOUR))
    clock.move(HOUR)
    await store.promote(10)
    await apply(store, transition.died(await claim_one(store, worker_id), Reason.EXHAUSTED, A_FAILURE))
    assert (await show(store, job_id)).mark == "read"
    await store.requeue(only(job_id), By("ada"), 10)
    assert (await show(store, job_id)).mark is None
    assert await found(store, JobFilter(mark="read")) == []


async def test_marked_jobs_are_listed_page_by_page(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where many with the mark do not match otherwise."""
    for engine in ("sqlite", "postgres"):
        monkeypatch.setattr(f"perdure.engines.{engine}.operate.views.insight.JOBS_PER_LOOK", 3)
    ids = [await enqueue(store, id=numbered_id(number), queue="ab"[number % 2]) for number in range(20)]
    await store.mark(JobFilter(ids=ids[:15]), "read", By("ada"), 100)
    newest = sorted(ids[:15], reverse=True)
    assert await found(store, JobFilter(mark="read"), Page(4)) == newest[:4]
    assert await found(store, JobFilter(mark="read"), Page(4, before=newest[3])) == newest[4:8]
    assert await found(store, JobFilter(mark="read"), Page(4, number=4)) == newest[12:]
    assert await found(store, JobFilter(mark="read"), Page(4, number=5)) == []
    assert await found(store, JobFilter(mark="read", queue="a"), Page(5)) == newest[0::2][:5]
    assert await found(store, JobFilter(mark="read", ids=ids[13:17])) == newest[:2]


async def test_jobs_with_a_mark_are_pruned_like_others(store: Store, clock: ManualClock) -> None:
    job_id = await job_in(JobState.SUCCEEDED, store)
    await store.mark(only(job_id), "read", By("ada"), 10)
    clock.move(HOUR)
    assert await store.prune(Keep(succeeded="1m"), 10) == 1
    assert await found(store, JobFilter(mark="read")) == []


@pytest.mark.parametrize("mark", ["", " ", "x" * 51, "a\nb", 3])
def test_what_is_no_mark_is_refused(mark: str) -> None:
    with pytest.raises(ArgumentError, match=r"^mark must be 1 to 50 printable characters"):
        JobFilter(mark=mark)


def test_a_filter_cannot_ask_for_a_mark_and_for_none() -> None:
    with pytest.raises(ArgumentError, match=r"^mark and marked=False are both given"):
        JobFilter(mark="read", marked=False)
    with pytest.raises(ArgumentError, match=r"^marked must be True, False or None, got 'yes'"):
        JobFilter(marked="yes")  # type: ignore[arg-type]
