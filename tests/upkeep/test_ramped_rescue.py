"""C2: the jobs of dead workers come back on a ramp where one is asked for, and at once (G4) where none is."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.conftest import OpenStore
from tests.support.builders.jobs import (
    HOUR,
    INSTANT,
    MINUTE,
    SECOND,
    a_job,
    apply,
    claim_one,
    claim_some,
    employ,
    ending_in,
    numbered_id,
    show,
    start,
    state_of,
)

from perdure import Opening, Queue, WorkerSettings
from perdure.clock import ManualClock
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.jobs.transition import Transition
from perdure.domain.leadership import Lead
from perdure.domain.operate.audit import Audited, By
from perdure.errors import StoreUnavailable
from perdure.events import Emitter, Event, JobsRescued, OrphansReturning, OrphansWaiting
from perdure.storage.port import Store
from perdure.storage.records import Acknowledged, JobFilter, Page
from perdure.upkeep.promoter import Promoter
from perdure.upkeep.ramped_rescue import LEAD
from perdure.upkeep.rescuer import RescueOwner, Rescuer, RescueSettings
from perdure.worker.claiming.slow_start import openings

LEASE = timedelta(seconds=30)
SWEEP = timedelta(seconds=5)
TEN = Opening("10s")


class House:
    """A rescuer with a ramp, its promoter, and what they tell."""

    def __init__(self, store: Any, clock: ManualClock, opening: Opening | None = TEN, *queues: Queue) -> None:
        self.store = store
        self.clock = clock
        self.opening = opening
        self.events: list[Event] = []
        emitter = Emitter()
        emitter.subscribe(self.events.append)
        settings = WorkerSettings(opening=opening, queues=queues or ("default",))
        self.woken: list[str] = []
        self.rescuer = Rescuer(
            store,
            emitter,
            clock,
            RescueSettings(lease=LEASE, sweep=SWEEP, openings=openings(settings)),
            RescueOwner(
                on_ready=lambda: self.woken.append("fetcher"),
                on_returning=lambda: self.woken.append("promoter"),
            ),
        )
        self.promoter = Promoter(store, emitter, lambda: None)

    async def sweep(self) -> None:
        """Let the next sweep come."""
        self.clock.move(SWEEP)
        await self.rescuer.tick()

    def told(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


async def orphan(store: Store, count: int, queue: str = "default", first: int = 0) -> list[Claim]:
    """So many jobs in the hands of a worker that is gone, in the order of their claims."""
    await store.insert([a_job(id=numbered_id(first + number), queue=queue) for number in range(count)])
    worker_id = await employ(store)
    claims = await claim_some(store, worker_id, count, queue)
    assert len(claims) == count
    await store.retire(worker_id)
    return sorted(claims, key=lambda claim: claim.job_id)


async def due_times(store: Store, since: datetime) -> dict[JobId, float]:
    """When each parked job comes back, in seconds from then."""
    parked = await store.jobs(JobFilter(states=frozenset({JobState.RETRYING})), Page(5_000))
    assert {view.reason for view in parked} <= {Reason.CRASHED}
    return {view.id: (view.due_at - since).total_seconds() for view in parked if view.due_at}


@pytest.mark.parametrize("phase", ["5m", "10s"])
@pytest.mark.parametrize("orphans", [1, 2, 10, 11, 1_000])
async def test_c2_each_orphan_is_parked_until_its_time_on_the_ramp(
    store: Store, clock: ManualClock, phase: str, orphans: int
) -> None:
    opening = Opening(phase)
    claims = await orphan(store, orphans)
    house = House(store, clock, opening)
    rescued = await house.rescuer.tick()
    assert (rescued.ready, rescued.returning, rescued.dead, rescued.failed) == (1, orphans - 1, 0, 0)
    due = await due_times(store, clock.now())
    waits = [wait.total_seconds() for wait in opening.waits(orphans)]
    assert [due.get(claim.job_id, 0.0) for claim in claims] == waits
    assert await state_of(store, claims[0].job_id) is JobState.READY
    assert house.told(OrphansReturning) == [OrphansReturning("default", orphans, 0, waits[-1])]
    assert house.told(OrphansWaiting) == []
    assert house.told(JobsRescued) == [JobsRescued(orphans, 0)]
    assert house.woken == (["fetcher"] if orphans == 1 else ["fetcher", "promoter"])


async def test_c2_the_promoter_brings_them_back_when_their_time_has_come(store: Store, clock: ManualClock) -> None:
    claims = await orphan(store, 20)
    house = House(store, clock)
    await house.rescuer.tick()
    worker_id, begun = await employ(store), clock.monotonic()
    waits = iter(TEN.waits(20))
    for expected, wait in zip(claims, waits, strict=True):
        due_in = wait - timedelta(seconds=clock.monotonic() - begun)
        if due_in > timedelta(0):
            clock.move(due_in - INSTANT)
            await house.promoter.tick()
            assert await claim_some(store, worker_id) == []
            clock.move(INSTANT)
        await house.promoter.tick()
        again = await claim_one(store, worker_id)
        assert (again.job_id, again.crashes, again.failures) == (expected.job_id, 1, 0)


async def test_c2_1500_orphans_take_two_rounds(store: Store, clock: ManualClock) -> None:
    """The second begins when the last one of the first is due, and not before."""
    await orphan(store, 1_500)
    house = House(store, clock)
    assert (await house.rescuer.tick()).returning == 999
    assert house.told(OrphansWaiting) == [OrphansWaiting("default", 32.0)]
    begun = clock.now()
    while clock.now() + SWEEP < begun + 32 * SECOND:
        await house.sweep()
        assert len(await store.orphans(1_000)) == 500
    clock.move(begun + 32 * SECOND - INSTANT - clock.now())
    await house.rescuer._rescue_all()
    assert len(await store.orphans(1_000)) == 500
    clock.move(INSTANT)
    await house.rescuer._rescue_all()
    assert await store.orphans(1_000) == []
    assert [(event.jobs, event.over) for event in house.told(OrphansReturning)] == [(1_000, 32.0), (500, 32.0)]
    assert len(house.told(OrphansWaiting)) == 1
    second = [due for due in (await due_times(store, clock.now())).values() if due > 0]
    assert sorted(second) == [wait.total_seconds() for wait in TEN.waits(500)[1:]]


async def test_c2_those_with_a_checkpoint_come_first_and_then_the_longest_held(
    store: Store, clock: ManualClock
) -> None:
    """Wherever they stand among the pages of orphans, and however few one round takes."""
    ids = [numbered_id(number) for number in range(1_200)]
    await store.insert([a_job(id=job_id) for job_id in ids])
    old, young = await employ(store), await employ(store)
    claims = await claim_some(store, young, 1_199)
    [last] = await claim_some(store, old, 10)
    checkpointed = [claims[700], claims[1_190], claims[3]]
    for claim in checkpointed:
        assert await store.checkpoint(claim, '{"page":7}')
    held_long = claims[1_100]
    await apply(store, transition.released(held_long))
    clock.move(-HOUR)
    assert (await claim_one(store, old)).job_id == held_long.job_id
    clock.move(HOUR)
    for worker_id in (old, young):
        await store.retire(worker_id)
    house = House(store, clock, Opening("10s", at_most=5))
    await house.rescuer.tick()
    due = await due_times(store, clock.now())
    first = await claim_one(store, await employ(store))
    returned = [first.job_id, *sorted(due, key=due.__getitem__)]
    with_checkpoint = sorted(claim.job_id for claim in checkpointed)
    assert returned == [*with_checkpoint, held_long.job_id, ids[0]]
    assert last.job_id not in returned
    [event] = house.told(OrphansReturning)
    assert (event.jobs, event.with_checkpoint) == (5, 3)


async def test_f2_a_job_that_crashed_too_often_is_dead_at_once_and_takes_no_place(
    store: Store, clock: ManualClock
) -> None:
    killer = await start(store, crash_limit=1)
    await store.bury_silent(-SECOND)
    claims = await orphan(store, 2)
    house = House(store, clock)
    rescued = await house.rescuer.tick()
    assert (rescued.ready, rescued.returning, rescued.dead) == (1, 1, 1)
    assert await state_of(store, killer.job_id) is JobState.DEAD
    assert await due_times(store, clock.now()) == {claims[1].job_id: 2.0}
    [attempt] = await store.attempts(claims[1].job_id)
    assert (attempt.reason, attempt.next_at) == (Reason.CRASHED, clock.now() + 2 * SECOND)
    assert (await show(store, claims[1].job_id)).crashes == 1


async def test_c2_every_queue_has_a_ramp_of_its_own_or_none(store: Store, clock: ManualClock) -> None:
    """What a queue says holds for it; for the others, also those that this worker does not serve, the worker's word."""
    for number, queue in enumerate(("mail", "reports", "elsewhere")):
        await orphan(store, 3, queue, first=10 * number)
    mail = Queue("mail", opening=Opening("20s"))
    await House(store, clock, TEN, mail, Queue("reports")).rescuer.tick()
    due = await due_times(store, clock.now())
    assert sorted(due.values()) == [1.0, 1.0, 2.0, 2.0, 2.0, 4.0]
    assert {job_id: due[job_id] for job_id in (numbered_id(1), numbered_id(2))} == {
        numbered_id(1): 2.0,
        numbered_id(2): 4.0,
    }


async def test_c2_a_round_in_one_queue_holds_up_no_other(store: Store, clock: ManualClock) -> None:
    house = House(store, clock)
    await orphan(store, 11, "mail")
    await house.rescuer.tick()
    await orphan(store, 5, "reports", first=100)
    late = await orphan(store, 1, "mail", first=200)
    await house.sweep()
    assert [(event.queue, event.jobs) for event in house.told(OrphansReturning)] == [("mail", 11), ("reports", 5)]
    assert [held.claim.job_id for held in await store.orphans(10)] == [late[0].job_id]


async def test_c2_the_ramp_of_one_queue_leaves_the_others_at_once(store: Store, clock: ManualClock) -> None:
    """G4 for a queue without a ramp, although more orphans of another wait than pages are long."""
    await orphan(store, 1_100, "slow")
    plain = await orphan(store, 3, "plain", first=5_000)
    slow = Queue("slow", opening=Opening("10s", at_most=2))
    await House(store, clock, None, Queue("plain"), slow).rescuer.tick()
    assert [await state_of(store, claim.job_id) for claim in plain] == [JobState.READY] * 3
    assert len(await store.orphans(2_000)) == 1_098


async def test_g4_without_a_ramp_all_come_back_at_once_and_no_worker_leads(store: Store, clock: ManualClock) -> None:
    claims = await orphan(store, 1_100)
    house = House(store, clock, None)
    rescued = await house.rescuer.tick()
    assert (rescued.ready, rescued.returning) == (1_100, 0)
    assert len(await claim_some(store, await employ(store), 2_000)) == len(claims)
    assert await store.leaders() == []
    assert house.told(JobsRescued) == [JobsRescued(1_100, 0)]
    assert house.told(OrphansReturning) == []


async def test_c2_two_rescuers_at_once_make_one_ramp(store: Store, clock: ManualClock, other_store: OpenStore) -> None:
    """The leader writes the round; the other worker leaves its orphans alone, now and at the next sweep."""
    claims = await orphan(store, 1_200)
    houses = [House(store, clock), House(await other_store(), clock), House(await other_store(), clock)]
    rescued = await asyncio.gather(*(house.rescuer.tick() for house in houses))
    assert sum(one.ready + one.returning for one in rescued) == 1_000
    await asyncio.gather(*(house.sweep() for house in houses))
    assert sum(len(house.told(OrphansReturning)) for house in houses) == 1
    due = Counter((await due_times(store, clock.now() - 3 * SWEEP)).values())
    assert due == Counter(wait.total_seconds() for wait in TEN.waits(1_000)[1:])
    for claim in claims:
        assert len(await store.attempts(claim.job_id)) <= 1


async def test_c2_while_another_worker_leads_it_handles_the_orphans(store: Store, clock: ManualClock) -> None:
    """A leader that died before its round delays the others no longer than its lease."""
    await orphan(store, 3)
    assert (await store.lead(LEAD, "somebody else", 15 * SECOND)).is_ours
    house = House(store, clock)
    await house.rescuer.tick()
    await house.sweep()
    assert len(await store.orphans(10)) == 3
    clock.move(10 * SECOND)
    await house.sweep()
    assert await store.orphans(10) == []


class Overtaken:
    """A store in which another worker acts just before the lead is requested."""

    def __init__(self, store: Store, first: Callable[[], Awaitable[object]]) -> None:
        self._store = store
        self._first = first

    async def lead(self, name: str, holder: str, lease: timedelta) -> Lead:
        await self._first()
        return await self._store.lead(name, holder, lease)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


async def test_c2_a_round_that_began_meanwhile_is_respected(store: Store, clock: ManualClock) -> None:
    """Who has gathered its orphans and gets the lead looks once more before it begins."""
    await orphan(store, 20)
    quicker = House(store, clock, Opening("10s", at_most=12))
    house = House(Overtaken(store, quicker.rescuer.tick), clock)
    rescued = await house.rescuer.tick()
    assert (rescued.ready, rescued.returning, rescued.failed) == (0, 0, 0)
    assert [event.jobs for event in quicker.told(OrphansReturning)] == [12]
    assert len(await store.orphans(100)) == 8


class Dying:
    """A store that is gone after so many pages of a round."""

    def __init__(self, store: Store, pages: int) -> None:
        self._store = store
        self._pages = pages

    async def acknowledge(self, transitions: Sequence[Transition], audit: Collection[Audited] = ()) -> Acknowledged:
        self._pages -= 1
        if self._pages < 0:
            raise StoreUnavailable("the process is dead")
        return await self._store.acknowledge(transitions, audit)

    async def step_down(self, name: str, holder: str) -> None:
        raise StoreUnavailable(f"{holder} is dead and keeps {name}")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


async def test_c2_a_leader_that_dies_in_its_round_leaves_nothing_behind(store: Store, clock: ManualClock) -> None:
    """What it has parked comes back by anybody's promoter; the rest is the next round, of whoever leads then."""
    await orphan(store, 1_000)
    with pytest.raises(StoreUnavailable):
        await House(Dying(store, pages=1), clock).rescuer.tick()
    heir, begun = House(store, clock), clock.now()
    due = await due_times(store, begun)
    assert len(due) == 499
    ran = await _drained(heir, until=lambda: clock.now() >= begun + 2 * MINUTE)
    assert len(ran) == len(set(ran)) == 1_000
    [second] = heir.told(OrphansReturning)
    assert (second.jobs, second.over) == (500, 32.0)


async def _drained(house: House, until: Callable[[], bool]) -> list[JobId]:
    """Second by second, all that comes back is done; which jobs those were, in order."""
    worker_id, ran = await employ(house.store), []
    while not until():
        await house.promoter.tick()
        await house.rescuer.tick()
        claims = await claim_some(house.store, worker_id, 2_000)
        await apply(house.store, *(ending_in(JobState.SUCCEEDED, claim) for claim in claims))
        ran += [claim.job_id for claim in claims]
        house.clock.move(SECOND)
        assert await house.store.beat(worker_id)
    return ran


async def test_c2_the_whole_curve_as_a_worker_sees_it(store: Store, clock: ManualClock) -> None:
    """1,500 orphans and a phase of 10 s: after each second as many are back as the curve says, none twice."""
    await orphan(store, 1_500)
    house, worker_id, begun = House(store, clock), await employ(store), clock.monotonic()
    waits = TEN.waits(1_500)
    ran: list[JobId] = []
    for second in range(33):
        await house.promoter.tick()
        await house.rescuer.tick()
        ran += [claim.job_id for claim in await claim_some(store, worker_id, 2_000)]
        assert len(ran) == sum(wait <= timedelta(seconds=clock.monotonic() - begun) for wait in waits) or second == 32
        clock.move(SECOND)
        assert await store.beat(worker_id)
    assert 1_000 <= len(ran) == len(set(ran))


async def test_c2_a_job_called_off_meanwhile_does_not_come_back(store: Store, clock: ManualClock) -> None:
    claims = await orphan(store, 3)
    house = House(store, clock)
    await house.rescuer.tick()
    await store.cancel(JobFilter(ids=(claims[2].job_id,)), By("ada", "not needed"), 10)
    assert await store.last_return("default") == clock.now() + 1 * SECOND
    assert await state_of(store, claims[2].job_id) is JobState.CANCELLED


async def test_c2_a_job_put_off_by_an_operator_does_not_hold_up_the_next_round(
    store: Store, clock: ManualClock
) -> None:
    claims = await orphan(store, 3)
    house = House(store, clock, Opening("10s", at_most=2))
    await house.rescuer.tick()
    await store.reschedule(JobFilter(ids=(claims[1].job_id,)), clock.now() + 100 * HOUR, By("ada"), 10)
    stranger = House(store, clock, house.opening)
    clock.move(SECOND)
    await stranger.rescuer.tick()
    await house.sweep()
    assert await store.orphans(10) == []
    [late] = await orphan(store, 1, first=100)
    for _ in range(5):  # it saw the far-off one at 1 s, and waits 32 s from then
        await stranger.sweep()
        assert await state_of(store, late.job_id) is JobState.RUNNING
    await stranger.sweep()
    assert await state_of(store, late.job_id) is JobState.READY
