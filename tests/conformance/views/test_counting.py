"""InsightStore.count: how many jobs match a filter, in all and by group, and never more work than the cap allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.support.builders.jobs import (
    HOSTILE,
    HOUR,
    MINUTE,
    a_job,
    apply,
    claim_some,
    employ,
    enqueue,
    job_in,
    numbered_id,
)

from perdure.clock import ManualClock
from perdure.domain.jobs import transition
from perdure.domain.jobs.outcome import Failure
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.operate.audit import By
from perdure.errors import ArgumentError
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page, Tally


async def counted(store: Store, cap: int = 10_000, **which: Any) -> tuple[int, bool]:
    [tally] = await store.count(JobFilter(**which), (), cap)
    return tally.jobs, tally.capped


async def one_in_every_state(store: Store) -> None:
    for state in sorted(JobState, key=lambda each: each is JobState.READY):
        await job_in(state, store)


async def finish(store: Store, count: int, error: str | None = None, **changes: Any) -> None:
    """Jobs that succeed, or die of this error."""
    await store.insert([a_job(**changes) for _ in range(count)])
    claims = await claim_some(store, await employ(store), count, changes.get("queue", "default"))
    assert len(claims) == count
    await apply(
        store,
        *(
            transition.succeeded(claim, None, ())
            if error is None
            else transition.died(claim, Reason.PERMANENT, Failure("E", error))
            for claim in claims
        ),
    )


async def test_an_empty_store_counts_to_zero(store: Store) -> None:
    assert await store.count(JobFilter()) == [Tally(jobs=0)]
    assert await store.count(JobFilter(), ("kind",)) == []
    assert await store.count(JobFilter(states=())) == [Tally(jobs=0)]
    assert await store.count(JobFilter(ids=())) == [Tally(jobs=0)]


async def test_jobs_are_counted_by_state(store: Store) -> None:
    await one_in_every_state(store)
    assert await counted(store) == (len(JobState), False)
    for state in JobState:
        assert await counted(store, states=state) == (1, False)
    assert await counted(store, states=("dead", "ready")) == (2, False)
    by_state = await store.count(JobFilter(), ("state",))
    assert by_state == [Tally(jobs=1, state=state) for state in sorted(JobState)]


async def test_jobs_are_counted_by_kind_queue_tag_and_error(store: Store) -> None:
    await finish(store, 2, kind="mail", queue="out", tags=("eu",))
    await finish(store, 1, "No such Host", kind="mail", queue="out", tags=("us", "eu"))
    await enqueue(store, kind="text", queue="in")
    assert await counted(store, kind="mail") == (3, False)
    assert await counted(store, queue="out") == (3, False)
    assert await counted(store, queue="nowhere") == (0, False)
    assert await counted(store, tag="eu") == (3, False)
    assert await counted(store, tag="us", states="dead") == (1, False)
    assert await counted(store, error="no such host") == (1, False)
    assert await counted(store, kind="mail", queue="in") == (0, False)
    assert await store.count(JobFilter(), ("kind", "state")) == [
        Tally(jobs=1, kind="mail", state=JobState.DEAD),
        Tally(jobs=2, kind="mail", state=JobState.SUCCEEDED),
        Tally(jobs=1, kind="text", state=JobState.READY),
    ]
    assert await store.count(JobFilter(kind="mail"), "queue") == [Tally(jobs=3, queue="out")]


async def test_dead_letters_of_a_kind_are_counted_with_and_without_a_failure(store: Store) -> None:
    """Some have a fingerprint, some none; other kinds and queues do not count."""
    for queue in ("web", "mail"):
        await finish(store, 2, "boom 1", kind="rare", queue=queue)
        await finish(store, 1, "other", kind="usual", queue=queue)
        await enqueue(store, kind="rare", queue=queue)
        [claim] = await claim_some(store, await employ(store), 1, queue)
        bare = transition.died(claim, Reason.PERMANENT, None)  # type: ignore[arg-type] # as of a release without them
        await apply(store, bare)
    assert await counted(store, kind="rare", states="dead") == (6, False)
    assert await counted(store, kind="rare", states="dead", queue="mail") == (3, False)
    assert await counted(store, 6, kind="rare", states="dead") == (6, False)
    assert await counted(store, 2, kind="rare", states="dead") == (4, True)
    rare = JobFilter(kind="rare", states="dead")
    assert [(tally.queue, tally.jobs) for tally in await store.count(rare, ("queue",))] == [("mail", 3), ("web", 3)]
    assert len(await store.jobs(rare, Page(10))) == 6


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_text_is_counted_as_it_is(store: Store, text: str) -> None:
    await enqueue(store, kind=text, queue=text, tags=(text,))
    await enqueue(store)
    for which in (JobFilter(kind=text), JobFilter(queue=text), JobFilter(tag=text)):
        assert await store.count(which, ("kind", "queue")) == [Tally(jobs=1, kind=text, queue=text)]


async def test_e10_failures_of_the_last_hour_are_counted(store: Store, clock: ManualClock) -> None:
    await finish(store, 3, "old")
    clock.move(2 * HOUR)
    await finish(store, 2, "new", queue="mail")
    await finish(store, 4)
    an_hour_ago = clock.now() - HOUR
    assert await counted(store, states="dead", finished_after=an_hour_ago) == (2, False)
    assert await counted(store, states="dead", finished_before=an_hour_ago) == (3, False)
    assert await counted(store, finished_after=an_hour_ago) == (6, False)
    assert await counted(store, states="dead", finished_after=an_hour_ago, error="old") == (0, False)
    assert await counted(store, finished_after=an_hour_ago, finished_before=an_hour_ago + MINUTE) == (0, False)
    assert await counted(store, states="ready", finished_after=an_hour_ago) == (0, False)


async def test_counting_stops_at_the_cap_in_each_queue_and_state(store: Store) -> None:
    await store.insert([a_job(queue="few") for _ in range(5)])
    await store.insert([a_job(queue="many", kind="ab"[number % 2]) for number in range(12)])
    assert await counted(store, 5, queue="few") == (5, False)
    assert await counted(store, 5, queue="many") == (5, True)
    assert await counted(store, 5) == (10, True)
    assert await store.count(JobFilter(), ("queue",), 5) == [
        Tally(jobs=5, queue="few"),
        Tally(jobs=5, queue="many", capped=True),
    ]
    by_kind = await store.count(JobFilter(), ("kind",), 5)
    assert all(tally.capped for tally in by_kind)
    assert sum(tally.jobs for tally in by_kind) == 10


async def test_what_is_not_looked_at_makes_a_count_capped_although_little_matches(store: Store) -> None:
    """One rare job among many: the answer says that there may be more."""
    await store.insert([a_job(id=numbered_id(number), kind="common") for number in range(10)])
    await enqueue(store, kind="rare", queue="other")
    assert await counted(store, 5, kind="rare") == (1, True)
    assert await counted(store, 10, kind="rare") == (1, False)


async def test_of_many_finished_jobs_the_last_are_looked_at(store: Store, clock: ManualClock) -> None:
    await finish(store, 4, kind="early")
    clock.move(MINUTE)
    await finish(store, 4, kind="late")
    assert await store.count(JobFilter(states="succeeded"), ("kind",), 3) == [
        Tally(jobs=3, kind="late", capped=True),
    ]


async def test_named_jobs_are_counted_where_they_stand(store: Store) -> None:
    ids = [await enqueue(store, queue="abc"[number]) for number in range(3)]
    assert await counted(store, ids=ids) == (3, False)
    assert await counted(store, ids=ids[:2], queue="a") == (1, False)
    assert await counted(store, 2, ids=ids) == (2, True)


async def test_marked_jobs_are_counted_where_they_stand(store: Store) -> None:
    await one_in_every_state(store)
    await store.mark(JobFilter(states=("dead", "succeeded", "ready")), "read", By("ada"), 10)
    assert await counted(store, mark="read") == (3, False)
    assert await counted(store, mark="read", states="dead") == (1, False)
    assert await counted(store, 2, mark="read") == (2, True)
    assert await counted(store, mark="unheard of") == (0, False)
    assert await counted(store, marked=False) == (len(JobState) - 3, False)
    assert await counted(store, marked=True, states="dead") == (1, False)
    assert await store.count(JobFilter(mark="read"), ("state",)) == [
        Tally(jobs=1, state=state) for state in sorted((JobState.DEAD, JobState.SUCCEEDED, JobState.READY))
    ]


@pytest.mark.parametrize(
    ("by", "cap", "field"),
    [((), 0, "cap"), ((), True, "cap"), ((), 10**9, "cap"), (("tag",), 5, "by"), ("colour", 5, "by"), ((3,), 5, "by")],
)
async def test_what_cannot_be_counted_is_refused_by_name(store: Store, by: Sequence[str], cap: int, field: str) -> None:
    with pytest.raises(ArgumentError, match=f"^{field} must be") as refused:
        await store.count(JobFilter(), by, cap)
    assert refused.value.field == field
