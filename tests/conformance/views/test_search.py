"""InsightStore.search: a list that looks at jobs one by one says how far it looked; questions have a time limit."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.support.builders.jobs import SECOND, a_job, apply, claim_some, employ, enqueue, numbered_id
from tests.support.databases.behind import query

from perdure.clock import ManualClock
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import JobState
from perdure.domain.operate.audit import By
from perdure.domain.operate.condition import Condition
from perdure.errors import StoreTimeout
from perdure.operate.desk import Desk
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page, Reach
from perdure.storage.time_limits import time_limit

HOUR = timedelta(hours=1)


async def a_history(store: Store, clock: ManualClock, count: int = 60) -> list[JobId]:
    """Jobs in several places, one a second, the rare ones far back; their ids, newest first."""
    worker_id = await employ(store)
    ids = [numbered_id(number) for number in range(count)]
    for number, job_id in enumerate(ids):
        rare = number in {1, 2, 7, 8}
        changes = {"kind": "rare" if rare else "common", "args": f'{{"n":{number}}}', "tags": ("t",) if rare else ()}
        await enqueue(store, id=job_id, **changes, **({"delay": HOUR} if number % 7 == 1 else {}))
        clock.move(SECOND)
    claims = await claim_some(store, worker_id, 30)
    await apply(store, *(transition.succeeded(claim, None, ()) for claim in claims[:20]))
    await apply(store, *(transition.cancelled(claim, None) for claim in claims[20:25]))
    return ids[::-1]


async def test_many_parked_jobs_are_listed_in_the_order_of_ids(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perdure.engines.sqlite.operate.views.insight._LONG_LINE_JOBS", 3)
    await a_history(store, clock)
    found = await store.jobs(JobFilter(states=("scheduled", "retrying")), Page(100))
    assert [job.id for job in found] == [numbered_id(number) for number in range(57, 0, -7)]


@pytest.mark.parametrize(
    "which",
    [
        JobFilter(kind="rare"),
        JobFilter(tag="t"),
        JobFilter(where=Condition("args", ("n",), "<", 9), kind="rare"),
        JobFilter(kind="rare", states=(JobState.SUCCEEDED, JobState.SCHEDULED, JobState.READY)),
        JobFilter(error="no such"),
        JobFilter(kind="common", states="cancelled"),
        JobFilter(states="succeeded"),
        JobFilter(marked=False, kind="rare"),
    ],
)
async def test_a_search_goes_on_where_it_ended_and_misses_nothing(
    store: Store, clock: ManualClock, which: JobFilter
) -> None:
    await a_history(store, clock)
    expected = [job.id for job in await store.jobs(which, Page(100))]
    for rows in (1, 7, 1_000):
        found: list[JobId] = []
        before, ends = None, 0
        while True:
            searched = await store.search(which, Page(3, before), Reach(rows, HOUR))
            found += [job.id for job in searched.jobs]
            if searched.behind is not None:
                assert len(searched.jobs) < 3
                assert searched.back_to == (await store.jobs(JobFilter(ids=searched.behind), Page(1)))[0].created_at
                before, ends = searched.behind, ends + 1
            elif len(searched.jobs) == 3:
                before = found[-1]
            else:
                break
        assert found == expected
        assert (ends > 0) is (rows < 60 and len(expected) < 18) or which.states is not None


async def test_a_search_by_mark_or_fingerprint_is_bounded_too(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for engine in ("sqlite", "postgres"):
        monkeypatch.setattr(f"perdure.engines.{engine}.operate.views.insight.JOBS_PER_LOOK", 5)
    ids = await a_history(store, clock)
    await store.mark(JobFilter(ids=ids), "read", By("ada"), 100)
    searched = await store.search(JobFilter(mark="read", kind="rare"), Page(10), Reach(10, HOUR))
    assert (searched.jobs, searched.behind) == ([], ids[9])
    whole = await store.search(JobFilter(mark="read", kind="rare"), Page(10), Reach(1_000, HOUR))
    assert ([job.id for job in whole.jobs], whole.behind) == ([ids[-9], ids[-8], ids[-3], ids[-2]], None)


async def test_a_desk_with_a_time_limit_says_how_far_it_looked(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perdure.operate.desk_base._ROWS_PER_LIST", 5)
    ids = await a_history(store, clock)
    desk = Desk(store, "ada", time_limit="1h")
    page = await desk.jobs(JobFilter(kind="rare"), Page(2))
    assert (page.jobs, page.searched_to is None, page.next is None) == ((), False, False)
    assert page.to_dict()["searched_to"] is not None
    found: list[JobId] = []
    while page.next is not None:
        page = await desk.jobs(JobFilter(kind="rare"), Page(2, page.next))
        found += [job.id for job in page.jobs]
    assert (found, page.searched_to) == ([ids[-9], ids[-8], ids[-3], ids[-2]], None)
    plain = await desk.jobs(JobFilter(), Page(2))
    assert (len(plain.jobs), plain.next, plain.searched_to) == (2, ids[1], None)
    changed = await desk.mark(JobFilter(kind="rare"), "seen")  # a command goes through to the end
    assert set(changed.ids) == set(found)
    unlimited = await Desk(store, "ada").jobs(JobFilter(kind="rare"))
    assert ([job.id for job in unlimited.jobs], unlimited.searched_to) == (found, None)


async def test_a_question_ends_with_its_time_limit(store: Store, engine_url: str) -> None:
    """And the next one is answered."""
    await store.insert([a_job() for _ in range(3_000)])
    slow = JobFilter(where=[Condition("args", ("name",), "~", f"x{number}") for number in range(10)])
    desk = Desk(store, "ada", time_limit=timedelta(microseconds=1))
    for ask in (desk.overview, desk.now, desk.jobs):
        if "sqlite" not in engine_url or ask != desk.now:  # which asks no database there
            with pytest.raises(StoreTimeout, match="time limit"):
                await ask()
    with time_limit(timedelta(milliseconds=2)), pytest.raises(StoreTimeout, match="time limit"):
        await store.count(slow, cap=10_000)
    with time_limit(timedelta(seconds=60)):
        assert len(await store.jobs(JobFilter(), Page(5))) == 5
    assert await store.counts()
    assert query(engine_url, "SELECT count(*) FROM {job}") == [(3_000,)]
