"""The fence in a database that went back in time: no token is given out twice (G3).

A standby that is promoted, or a backup that is restored, knows nothing of the newest claims. Its counter of tokens goes
back with it, while the workers that hold those claims go on.
"""

from __future__ import annotations

import pytest
from tests.conftest import OpenStore
from tests.support.builders.jobs import HOUR, a_job, apply, claim_one, claim_some, employ, enqueue, show
from tests.support.builders.transitions import EVERY_TRANSITION, Decision
from tests.support.databases.behind import query
from tests.support.databases.snapshot import Snapshot

from perdure.clock import ManualClock
from perdure.domain.flows.flow import NewFamily, Progress, StepKind, StepRecord, StepState, StepWrite
from perdure.domain.jobs import transition
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.log_lines import NewLine
from perdure.storage.port import Store
from perdure.storage.records import Acknowledged

each_transition = pytest.mark.parametrize("decide", EVERY_TRANSITION.values(), ids=EVERY_TRANSITION.keys())
by_itself = pytest.mark.parametrize("by_itself", [False, True], ids=["by another worker", "by the same worker"])


async def claimed_twice(store: Store, again: Store, url: str, *, by_itself: bool) -> tuple[Claim, Claim]:
    """Two claims of one job, of which the database has forgotten the first; the second is over another connection."""
    first, second = await employ(store), await employ(store)
    await enqueue(store)
    snapshot = Snapshot(url)
    late = await claim_one(store, first)
    snapshot.put_back()
    held = await claim_one(again, first if by_itself else second)
    assert held.job_id == late.job_id
    return late, held


@by_itself
@each_transition
async def test_g3_a_claim_that_the_database_has_forgotten_changes_nothing(
    store: Store, other_store: OpenStore, engine_url: str, decide: Decision, by_itself: bool
) -> None:
    late, held = await claimed_twice(store, await other_store(), engine_url, by_itself=by_itself)
    before = await show(store, held.job_id)
    assert await store.acknowledge([decide(late)]) == Acknowledged(applied=0, stale=(late,))
    assert await show(store, held.job_id) == before
    assert await store.acknowledge([decide(held)]) == Acknowledged(applied=1)


@by_itself
async def test_g3_nothing_else_is_written_under_a_forgotten_claim(
    store: Store, other_store: OpenStore, clock: ManualClock, engine_url: str, by_itself: bool
) -> None:
    late, held = await claimed_twice(store, await other_store(), engine_url, by_itself=by_itself)
    assert not await store.checkpoint(late, '{"page":7}')
    assert not await store.spend(late, "ai", 1)
    step = StepRecord(key="fetch", kind=StepKind.CALL, state=StepState.DONE, begun_at=clock.now())
    assert await store.save_steps([StepWrite(late, step)]) == [False]
    assert not await store.spawn(late, NewFamily(key="all", children=(a_job(),)))
    await store.save_progress({late.job_id: (late, Progress(current=1, total=2, note=None, at=clock.now()))})
    await store.save_lines([NewLine(claim=late, at=clock.now(), level="INFO", text="too late")])
    assert await store.steps([late.job_id]) == {}
    assert await store.progress(late.job_id) is None
    assert await store.lines(late.job_id, 10) == []
    assert await store.checkpoint(held, '{"page":8}')
    assert (await show(store, held.job_id)).cursor == '{"page":8}'


async def test_g3_tokens_rise_although_the_counter_went_back(real_time_store: Store, engine_url: str) -> None:
    """An outside system that was given the first token takes the second: it is from the database of today."""
    worker_id = await employ(real_time_store)
    await enqueue(real_time_store)
    snapshot = Snapshot(engine_url)
    late = await claim_one(real_time_store, worker_id)
    snapshot.put_back()
    reconnected = real_time_store.sibling()
    await reconnected.open()
    try:
        held = await claim_one(reconnected, worker_id)
        assert (held.job_id, held.token > late.token) == (late.job_id, True)
    finally:
        await reconnected.close()


async def test_g3_tokens_rise_when_the_clock_is_put_back(store: Store, clock: ManualClock) -> None:
    worker_id = await employ(store)
    await enqueue(store)
    tokens = []
    for _ in range(5):
        claim = await claim_one(store, worker_id)
        tokens.append(claim.token)
        await apply(store, transition.released(claim))
        clock.move(-HOUR)
    assert tokens == sorted(set(tokens))


async def test_g3_the_database_does_not_count_workers(store: Store, engine_url: str) -> None:
    """Or it would give an id that is in use to somebody else, who would be taken for its owner."""
    snapshot = Snapshot(engine_url)
    ids = set()
    for _ in range(20):
        ids.add(await employ(store))
        snapshot.put_back()
    assert len(ids) == 20
    assert all(2**40 <= worker_id < 2**53 for worker_id in ids)


async def test_g3_a_worker_whose_registration_was_forgotten_has_lost_its_id(store: Store, engine_url: str) -> None:
    snapshot = Snapshot(engine_url)
    forgotten = await employ(store)
    snapshot.put_back()
    await employ(store)
    assert not await store.beat(forgotten)
    await enqueue(store)
    assert await claim_some(store, forgotten) == []
    assert query(engine_url, "SELECT count(*) FROM {lease}") == [(0,)]
