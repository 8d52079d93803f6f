"""Leadership: one leads, believes in it for less long than the others, and gives it back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.support.timer import ManualTimer, settle
from tests.support.waiting import until

from perdure.clock import Clock, ManualClock
from perdure.domain.leadership import Lead, LeaderView
from perdure.errors import SettingsError, StoreUnavailable
from perdure.events import Emitter, Event, LeadLost, LeadTaken, StoreTrouble
from perdure.lifecycle.loops.leadership import Leadership
from perdure.storage.fleet.leaders import LeaderStore
from perdure.storage.port import Store

SECOND = timedelta(seconds=1)
LEASE = 15 * SECOND
BELIEF = 12 * SECOND  # a fifth less


class Told:
    """What was emitted."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.emitter = Emitter()
        self.emitter.subscribe(self.events.append)


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def candidate(store: Store, clock: ManualClock, told: Told) -> Callable[..., Leadership]:
    """Make a candidate for the same lead."""

    def make(holder: str, own_clock: Clock | None = None) -> Leadership:
        return Leadership(store, "loop:sweep", holder, told.emitter, own_clock or clock)

    return make


class SlowStore:
    """A store whose answers take their time, or do not come."""

    def __init__(self, store: LeaderStore) -> None:
        self._store = store
        self.while_it_answers: Callable[[], object] = lambda: None
        self.is_away = False

    async def lead(self, name: str, holder: str, lease: timedelta) -> Lead:
        if self.is_away:
            raise StoreUnavailable("gone")
        lead = await self._store.lead(name, holder, lease)
        self.while_it_answers()
        return lead

    async def step_down(self, name: str, holder: str) -> None:
        if self.is_away:
            raise StoreUnavailable("gone")
        await self._store.step_down(name, holder)

    async def leaders(self) -> list[LeaderView]:
        return await self._store.leaders()


async def test_one_of_three_leads_and_goes_on_leading(
    candidate: Callable[..., Leadership], clock: ManualClock, told: Told
) -> None:
    three = [candidate(name) for name in ("anna", "bert", "carl")]
    for _ in range(10):
        for one in three:
            await one.tick()
        assert [one.is_leading for one in three] == [True, False, False]
        clock.move(5 * SECOND)
    assert three[0].term == 1
    assert told.events == [LeadTaken("loop:sweep", "anna", 1)]


async def test_the_lead_is_renewed_at_a_third_of_the_lease(candidate: Callable[..., Leadership]) -> None:
    anna, bert = candidate("anna"), candidate("bert")
    assert anna.interval == 5 * SECOND
    assert anna.next_wait(await anna.tick()) == 5 * SECOND
    assert bert.next_wait(await bert.tick()) == 5 * SECOND


async def test_a_follower_looks_again_when_the_lease_runs_out(
    candidate: Callable[..., Leadership], clock: ManualClock
) -> None:
    anna, bert = candidate("anna"), candidate("bert")
    await anna.tick()
    clock.move(12 * SECOND)
    assert bert.next_wait(await bert.tick()) == 3 * SECOND


async def test_another_takes_over_when_the_lease_has_run_out_and_the_term_rises(
    candidate: Callable[..., Leadership], clock: ManualClock, told: Told
) -> None:
    anna, bert = candidate("anna"), candidate("bert")
    await anna.tick()
    clock.move(LEASE - timedelta(milliseconds=1))
    await bert.tick()
    assert (bert.is_leading, bert.term) == (False, 0)
    clock.move(timedelta(milliseconds=1))
    await bert.tick()
    assert (bert.is_leading, bert.term) == (True, 2)
    await anna.tick()
    assert not anna.is_leading
    assert told.events == [
        LeadTaken("loop:sweep", "anna", 1),
        LeadTaken("loop:sweep", "bert", 2),
        LeadLost("loop:sweep", "anna", 1, "the lease was not renewed in time"),
    ]


async def test_a_leader_that_steps_down_is_followed_at_once(
    candidate: Callable[..., Leadership], told: Told, store: Store
) -> None:
    anna, bert = candidate("anna"), candidate("bert")
    await anna.tick()
    await anna.step_down()
    assert not anna.is_leading
    await bert.tick()
    assert bert.is_leading
    assert bert.term == 2
    assert told.events[1] == LeadLost("loop:sweep", "anna", 1, "stepped down")
    assert [view.holder for view in await store.leaders()] == ["bert"]


async def test_who_has_stepped_down_does_not_ask_again(candidate: Callable[..., Leadership], store: Store) -> None:
    anna = candidate("anna")
    await anna.tick()
    await anna.step_down()
    assert await anna.tick() is None
    assert not anna.is_leading
    assert await store.leaders() == []


async def test_a_follower_that_steps_down_takes_nothing_from_the_leader(candidate: Callable[..., Leadership]) -> None:
    anna, bert = candidate("anna"), candidate("bert")
    await anna.tick()
    await bert.tick()
    await bert.step_down()
    await anna.tick()
    assert anna.is_leading
    assert anna.term == 1


async def test_a_paused_leader_stops_believing_before_another_can_lead(
    candidate: Callable[..., Leadership], clock: ManualClock
) -> None:
    """At every moment of a pause at most one of them leads."""
    anna, bert = candidate("anna"), candidate("bert")
    await anna.tick()
    believed, taken = [], []
    for moment in range(40):
        await bert.tick()
        assert not (anna.is_leading and bert.is_leading)
        believed.append(anna.is_leading)
        taken.append(bert.is_leading)
        clock.move(SECOND / 2)
        assert moment < 30 or bert.is_leading
    assert believed.index(False) == BELIEF / (SECOND / 2)
    assert taken.index(True) == LEASE / (SECOND / 2)


async def test_belief_counts_from_before_the_question_not_from_the_answer(
    store: Store, clock: ManualClock, told: Told
) -> None:
    slow = SlowStore(store)
    anna = Leadership(slow, "loop:sweep", "anna", told.emitter, clock)
    slow.while_it_answers = lambda: clock.move(4 * SECOND)
    await anna.tick()
    assert anna.is_leading
    clock.move(8 * SECOND)
    assert not anna.is_leading


async def test_an_answer_that_comes_too_late_makes_no_leader(store: Store, clock: ManualClock, told: Told) -> None:
    slow = SlowStore(store)
    anna = Leadership(slow, "loop:sweep", "anna", told.emitter, clock)
    slow.while_it_answers = lambda: clock.move(13 * SECOND)
    await anna.tick()
    assert not anna.is_leading
    assert told.events == []
    slow.while_it_answers = lambda: None
    await anna.tick()
    assert anna.is_leading


async def test_while_the_store_is_away_it_leads_until_the_margin_and_then_no_more(
    store: Store, clock: ManualClock, told: Told
) -> None:
    slow = SlowStore(store)
    anna = Leadership(slow, "loop:sweep", "anna", told.emitter, clock)
    await anna.tick()
    slow.is_away = True
    for leads in (True, True, False):
        clock.move(5 * SECOND)
        with pytest.raises(StoreUnavailable):
            await anna.tick()
        assert anna.is_leading is leads
    assert told.events[1:] == [LeadLost("loop:sweep", "anna", 1, "the lease was not renewed in time")]
    slow.is_away = False
    await anna.tick()
    assert anna.is_leading
    assert anna.term == 1, "nobody else has led"


async def test_stepping_down_without_a_store_is_no_error(store: Store, clock: ManualClock, told: Told) -> None:
    slow = SlowStore(store)
    anna = Leadership(slow, "loop:sweep", "anna", told.emitter, clock)
    await anna.tick()
    slow.is_away = True
    await anna.step_down()
    assert not anna.is_leading


async def test_a_database_clock_that_is_put_back_changes_nothing_for_a_leader_that_lives(
    candidate: Callable[..., Leadership], clock: ManualClock
) -> None:
    own = ManualClock()
    anna, bert = candidate("anna", own), candidate("bert", own)
    await anna.tick()
    clock.move(timedelta(hours=-1))
    for _ in range(6):
        own.move(5 * SECOND)
        clock.move(5 * SECOND)
        await anna.tick()
        await bert.tick()
        assert (anna.is_leading, bert.is_leading) == (True, False)
    clock.move(LEASE)
    own.move(LEASE)
    await bert.tick()
    assert bert.is_leading, "the lease is counted by the clock as it is now"


async def test_a_database_clock_that_is_put_forward_costs_the_lead_and_the_old_leader_hears_of_it(
    candidate: Callable[..., Leadership], clock: ManualClock, told: Told
) -> None:
    own = ManualClock()
    anna, bert = candidate("anna", own), candidate("bert", own)
    await anna.tick()
    clock.move(timedelta(hours=1))
    await bert.tick()
    assert bert.is_leading
    await anna.tick()
    assert (anna.is_leading, bert.is_leading) == (False, True)
    assert told.events[-1] == LeadLost("loop:sweep", "anna", 1, "bert leads in term 2")


async def test_a_wall_clock_that_jumps_here_changes_nothing(candidate: Callable[..., Leadership]) -> None:
    own = ManualClock()
    anna = candidate("anna", own)
    await anna.tick()
    own.move(timedelta(hours=-1))
    assert anna.is_leading
    own.move(BELIEF)
    assert not anna.is_leading, "though its date lies before that of the answer"


async def test_a_lead_that_was_lost_and_won_again_between_two_looks_is_reported(
    candidate: Callable[..., Leadership], clock: ManualClock, told: Told
) -> None:
    own = ManualClock()
    anna, bert = candidate("anna", own), candidate("bert", own)
    await anna.tick()
    clock.move(timedelta(hours=1))
    await bert.tick()
    await bert.step_down()
    await anna.tick()
    assert anna.is_leading
    assert anna.term == 3
    assert told.events[-2:] == [
        LeadLost("loop:sweep", "anna", 1, "another process has led in between"),
        LeadTaken("loop:sweep", "anna", 3),
    ]


async def test_leads_in_different_things_do_not_touch_each_other(store: Store, clock: ManualClock, told: Told) -> None:
    one = Leadership(store, "loop:sweep", "anna", told.emitter, clock)
    other = Leadership(store, "loop:digest", "bert", told.emitter, clock)
    await one.tick()
    await other.tick()
    assert one.is_leading
    assert other.is_leading


async def test_candidates_that_run_have_one_leader_and_a_stopped_one_hands_over(
    real_time_store: Store, told: Told
) -> None:
    """In real time, with the loops themselves: the second leads soon after the first is stopped."""
    timer = ManualTimer()
    clock = _Follows(timer)
    two = [Leadership(real_time_store, "loop:sweep", name, told.emitter, clock) for name in ("anna", "bert")]
    tasks = []
    for one in two:
        one.timer = timer
        tasks.append(asyncio.create_task(one.run()))
    leader = await until(lambda: next((one for one in two if one.is_leading), None))
    (follower,) = [one for one in two if one is not leader]
    leader.stop()
    await asyncio.wait(tasks[two.index(leader) : two.index(leader) + 1])
    assert not leader.is_leading
    follower.wake()
    await until(lambda: follower.is_leading)
    assert follower.term == 2
    follower.stop()
    await asyncio.gather(*tasks)
    assert await real_time_store.leaders() == []


async def test_the_loop_meets_database_trouble_with_patience(store: Store, clock: ManualClock, told: Told) -> None:
    slow = SlowStore(store)
    slow.is_away = True
    anna = Leadership(slow, "loop:sweep", "anna", told.emitter, clock)
    anna.timer = timer = ManualTimer()
    task = asyncio.create_task(anna.run())
    await timer.move(0.5)
    slow.is_away = False
    await timer.move(1)
    await until(lambda: anna.is_leading)
    anna.stop()
    await task
    assert next(event.what for event in told.events if isinstance(event, StoreTrouble)) == anna.name
    assert isinstance(told.events[-1], LeadLost)


async def test_a_new_leader_runs_its_callback(candidate: Callable[..., Leadership], clock: ManualClock) -> None:
    calls: list[int] = []
    anna = candidate("anna")
    anna.on_taken = lambda: calls.append(anna.term)
    await anna.tick()
    await anna.tick()
    await settle()
    assert calls == [1]
    clock.move(LEASE)
    await anna.tick()
    assert calls == [1, 1]


@pytest.mark.parametrize("lease", ["500ms", 0, "never"])
def test_a_lease_that_is_too_short_is_refused_by_name(lease: Any) -> None:
    with pytest.raises(SettingsError, match=r"^lease of loop:sweep "):
        Leadership(SlowStore(None), "loop:sweep", "anna", Emitter(), ManualClock(), lease)  # type: ignore[arg-type] # never asked


class _Follows:
    """A clock that goes with a timer."""

    def __init__(self, timer: ManualTimer) -> None:
        self._timer = timer
        self.now = ManualClock().now

    def monotonic(self) -> float:
        return self._timer.monotonic()
