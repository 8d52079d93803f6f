"""InsightStore: what can be seen from outside."""

from __future__ import annotations

import asyncio
from datetime import UTC, timedelta

import pytest
from tests.conftest import OpenStore
from tests.support.builders.jobs import (
    HOSTILE,
    HOUR,
    MINUTE,
    SECOND,
    a_job,
    apply,
    claim_some,
    employ,
    enqueue,
    job_in,
    numbered_id,
    show,
    start,
)

from perdure.clock import ManualClock, SystemClock
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import JobId, new_job_id
from perdure.domain.jobs.outcome import Failure
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.operate.audit import By
from perdure.storage.port import Store
from perdure.storage.records import Count, JobFilter, Page


async def found(store: Store, which: JobFilter) -> set[JobId]:
    return {view.id for view in await store.jobs(which, Page(limit=1_000))}


async def test_now_is_the_clock_that_was_put_in(store: Store, clock: ManualClock) -> None:
    assert await store.now() == clock.now()
    clock.move(HOUR)
    assert await store.now() == clock.now()
    clock.move(-2 * HOUR)
    assert await store.now() == clock.now()


async def test_now_is_the_databases_clock_otherwise(real_time_store: Store) -> None:
    """The test server runs on this machine, so its clock is the machine's."""
    before = SystemClock().now()
    now = await real_time_store.now()
    assert now.tzinfo is UTC
    assert before - MINUTE < now < before + MINUTE
    assert await real_time_store.now() >= now


async def test_times_are_kept_to_the_microsecond_in_utc(store: Store, clock: ManualClock) -> None:
    clock.move(timedelta(microseconds=123_457))
    view = await show(store, await enqueue(store))
    assert view.created_at == clock.now()
    assert view.created_at.tzinfo is UTC


async def test_an_unknown_job(store: Store) -> None:
    assert await store.job(new_job_id()) is None
    assert await store.attempts(new_job_id()) == []


@pytest.mark.parametrize("state", sorted(JobState))
async def test_a_job_is_shown_alike_alone_and_in_a_list(store: Store, state: JobState) -> None:
    job_id = await job_in(state, store)
    view = await show(store, job_id)
    assert (view.id, view.state) == (job_id, state)
    assert await store.jobs(JobFilter(), Page()) == [view]


async def test_the_newest_come_first_page_by_page(store: Store) -> None:
    ids = [numbered_id(number) for number in range(10)]
    await store.insert([a_job(id=job_id) for job_id in ids])
    claims = await claim_some(store, await employ(store), 5)
    await apply(store, *(transition.succeeded(claim, None, ()) for claim in claims[:3]))
    seen: list[JobId] = []
    while page := await store.jobs(JobFilter(), Page(limit=4, before=seen[-1] if seen else None)):
        assert len(page) <= 4
        seen += [view.id for view in page]
    assert seen == sorted(ids, reverse=True)


async def test_pages_of_a_filter_skip_nothing(store: Store) -> None:
    await store.insert([a_job(id=numbered_id(number), queue="ab"[number % 2]) for number in range(10)])
    first = await store.jobs(JobFilter(queue="a"), Page(limit=3))
    second = await store.jobs(JobFilter(queue="a"), Page(limit=3, before=first[-1].id))
    assert [view.id for view in first + second] == [numbered_id(number) for number in (8, 6, 4, 2, 0)]


async def test_filter_by_ids(store: Store) -> None:
    a, b, _ = [await enqueue(store) for _ in range(3)]
    assert await found(store, JobFilter(ids=(a, b, new_job_id()))) == {a, b}
    assert await found(store, JobFilter(ids=())) == set()


async def test_filter_by_states(store: Store) -> None:
    ids = {}
    for state in sorted(JobState, key=lambda each: each is JobState.READY):
        ids[state] = await job_in(state, store)
    for state, job_id in ids.items():
        assert await found(store, JobFilter(states=frozenset({state}))) == {job_id}
    two = frozenset({JobState.DEAD, JobState.READY})
    assert await found(store, JobFilter(states=two)) == {ids[state] for state in two}
    assert await found(store, JobFilter(states=frozenset())) == set()
    assert await found(store, JobFilter()) == set(ids.values())


async def test_filter_by_kind_queue_and_tag(store: Store) -> None:
    mail = await enqueue(store, kind="mail", queue="out", tags=("eu", "vip"))
    text = await enqueue(store, kind="text", queue="out", tags=("eu",))
    last = await enqueue(store, kind="mail", queue="in", tags=("eu vip", "e"))
    assert await found(store, JobFilter(kind="mail")) == {mail, last}
    assert await found(store, JobFilter(queue="out")) == {mail, text}
    assert await found(store, JobFilter(tag="eu")) == {mail, text}
    assert await found(store, JobFilter(tag="vip")) == {mail}
    assert await found(store, JobFilter(tag="%")) == set()
    assert await found(store, JobFilter(kind="mail", queue="out", tag="eu")) == {mail}
    assert await found(store, JobFilter(kind="text", queue="in")) == set()


async def test_filter_by_creation(store: Store, clock: ManualClock) -> None:
    ids, times = [], []
    for _ in range(3):
        times.append(clock.now())
        ids.append(await enqueue(store))
        clock.move(MINUTE)
    assert await found(store, JobFilter(created_before=times[1] + SECOND)) == set(ids[:2])
    assert await found(store, JobFilter(created_after=times[1] - SECOND)) == set(ids[1:])
    between = JobFilter(created_after=times[1] - SECOND, created_before=times[1] + SECOND)
    assert await found(store, between) == {ids[1]}


async def test_filter_by_end(store: Store, clock: ManualClock) -> None:
    """A job that has not ended did not end before anything."""
    early = await job_in(JobState.SUCCEEDED, store)
    clock.move(HOUR)
    late = await job_in(JobState.DEAD, store)
    await enqueue(store)
    assert await found(store, JobFilter(finished_before=clock.now() - MINUTE)) == {early}
    assert await found(store, JobFilter(finished_before=clock.now() + MINUTE)) == {early, late}


@pytest.mark.parametrize("few", [10_000, 2, 0])
async def test_e10_jobs_that_finished_in_a_time_are_listed(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    """Few are looked up by the time, many are found along their ids: the list is the same."""
    for engine in ("sqlite", "postgres"):
        monkeypatch.setattr(f"perdure.engines.{engine}.operate.views.insight.JOBS_LOOKED_UP_SINGLY", few)
    ids = []
    for number in range(6):
        ids.append(await job_in(JobState.SUCCEEDED if number % 2 else JobState.DEAD, store, queue="ab"[number % 2]))
        clock.move(HOUR)
    await enqueue(store)
    start = clock.now() - 6 * HOUR
    assert await found(store, JobFilter(finished_after=start + 2 * HOUR)) == set(ids[3:])
    assert await found(store, JobFilter(finished_after=start - SECOND)) == set(ids)
    assert await found(store, JobFilter(finished_after=start + 2 * HOUR, states="dead")) == {ids[4]}
    assert await found(store, JobFilter(finished_after=start + 2 * HOUR, queue="b")) == {ids[3], ids[5]}
    assert await found(store, JobFilter(finished_after=start, finished_before=start + 3 * HOUR)) == set(ids[1:3])
    assert await found(store, JobFilter(finished_after=start, states="ready")) == set()
    assert await found(store, JobFilter(finished_after=clock.now())) == set()
    assert await found(store, JobFilter(finished_after=start, ids=ids[:2])) == {ids[1]}
    newest = sorted(ids, reverse=True)
    page = await store.jobs(JobFilter(finished_after=start - SECOND), Page(2, before=newest[1]))
    assert [view.id for view in page] == newest[2:4]


async def test_a11_pages_by_number_are_those_of_the_cursor(store: Store) -> None:
    ids = [numbered_id(number) for number in range(10)]
    await store.insert([a_job(id=job_id, queue="ab"[number % 2]) for number, job_id in enumerate(ids)])
    claims = await claim_some(store, await employ(store), 3, "a")
    await apply(store, *(transition.succeeded(claim, None, ()) for claim in claims[:2]))
    newest = sorted(ids, reverse=True)
    for number in (1, 2, 3, 4, 5):
        page = await store.jobs(JobFilter(), Page(limit=3, number=number))
        assert [view.id for view in page] == newest[3 * (number - 1) : 3 * number]
    assert [view.id for view in await store.jobs(JobFilter(queue="b"), Page(2, number=2))] == newest[0::2][2:4]
    assert [view.id for view in await store.jobs(JobFilter(ids=ids[:5]), Page(2, number=3))] == ids[:1]


async def test_filter_by_a_piece_of_the_last_error_in_any_case(store: Store) -> None:
    claim = await start(store)
    await apply(store, transition.died(claim, Reason.PERMANENT, Failure("ssl.SSLError", "Certificate 100% expired_")))
    await job_in(JobState.DEAD, store)
    await enqueue(store)
    for piece in ("sslerror", "CERTIFICATE", "100%", "expired_", "e 100"):
        assert await found(store, JobFilter(error=piece)) == {claim.job_id}, piece
    for piece in ("100_", "%expired", "nowhere", "Traceback"):
        assert await found(store, JobFilter(error=piece)) == set(), piece


async def test_filter_by_error_looks_at_the_last_one_only(store: Store) -> None:
    claim = await start(store)
    await apply(store, transition.retrying(claim, Reason.FAILED, Failure("E", "first trouble"), timedelta(0)))
    [claim] = await claim_some(store, await employ(store))
    await apply(store, transition.died(claim, Reason.EXHAUSTED, Failure("E", "second trouble")))
    assert await found(store, JobFilter(error="first")) == set()
    assert await found(store, JobFilter(error="second")) == {claim.job_id}


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_text_in_a_filter_finds_its_like_only(store: Store, text: str) -> None:
    job_id = await enqueue(store, kind=text, queue=text, tags=(text,))
    await enqueue(store, tags=("other",))
    for which in (JobFilter(kind=text), JobFilter(queue=text), JobFilter(tag=text)):
        assert await found(store, which) == {job_id}
    claim = await start(store, queue="failing")
    await apply(store, transition.died(claim, Reason.PERMANENT, Failure("E", f"say {text}!")))
    assert await found(store, JobFilter(error=f" {text}!")) == {claim.job_id}


async def test_counts_show_how_many_stand_where(store: Store) -> None:
    for state in sorted(JobState, key=lambda each: each is JobState.READY):
        await job_in(state, store)
    await store.insert([a_job(queue="mail") for _ in range(3)])
    counts = [count for count in await store.counts() if count.jobs]
    expected = [Count("default", state, 1) for state in JobState] + [Count("mail", JobState.READY, 3)]
    assert sorted(counts, key=lambda count: (count.queue, count.state)) == sorted(
        expected, key=lambda count: (count.queue, count.state)
    )


async def test_counting_stops_at_the_cap(store: Store) -> None:
    await store.insert([a_job(queue="few") for _ in range(4)])
    await store.insert([a_job(queue="full") for _ in range(5)])
    await store.insert([a_job(queue="many") for _ in range(9)])
    await store.insert([a_job(queue="many", delay=HOUR) for _ in range(2)])
    counts = {(count.queue, count.state): (count.jobs, count.capped) for count in await store.counts(cap=5)}
    assert counts["few", JobState.READY] == (4, False)
    assert counts["full", JobState.READY][0] == 5
    assert counts["many", JobState.READY] == (5, True)
    assert counts["many", JobState.SCHEDULED] == (2, False)


async def test_an_empty_store_counts_nothing(store: Store) -> None:
    assert [count for count in await store.counts() if count.jobs] == []


async def test_what_is_written_by_one_store_is_seen_by_the_next(store: Store, other_store: OpenStore) -> None:
    elsewhere = await other_store()
    job_id = await enqueue(store)
    assert (await show(elsewhere, job_id)) == (await show(store, job_id))
    assert await elsewhere.now() == await store.now()


async def test_a_job_on_the_move_is_seen_in_exactly_one_place(store: Store, other_store: OpenStore) -> None:
    """However it is looked at, while others claim it and give it back."""
    looking = await other_store()
    worker_id = await employ(store)
    jobs = [await enqueue(store) for _ in range(5)]

    async def keep_moving() -> None:
        for _ in range(60):
            claims = await claim_some(store, worker_id)
            moves = [transition.waiting(claim, Reason.SNOOZED, MINUTE) for claim in claims]
            await store.acknowledge(moves)
            await store.run_now(JobFilter(), By("ops"), 10)

    moving = asyncio.create_task(keep_moving())
    looks = 0
    while not moving.done():
        assert await looking.job(jobs[looks % 5]) is not None
        assert [view.id for view in await looking.jobs(JobFilter(), Page())] == sorted(jobs, reverse=True)
        assert sum(count.jobs for count in await looking.counts()) == 5
        looks += 1
    await moving
    assert looks
