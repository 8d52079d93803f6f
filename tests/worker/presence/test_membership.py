"""A membership registers a worker and beats for it; when its id is lost it stops everything and gets a new one."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.support.builders.jobs import SECOND, a_worker
from tests.support.waiting import until

from perdure import WorkerSettings
from perdure.clock import ManualClock
from perdure.domain.jobs.ids import WorkerId
from perdure.events import Emitter, Event, WorkerLost
from perdure.storage.port import Store
from perdure.worker.presence.heartbeat import Heartbeat
from perdure.worker.presence.membership import Membership, MembershipOwner
from perdure.worker.surroundings import Surroundings


class House:
    """A worker that has only a membership."""

    def __init__(self, store: Store, clock: ManualClock) -> None:
        self.told: list[str] = []
        self.ids: list[WorkerId | None] = []
        self.events: list[Event] = []
        self.is_quieted = False
        self.is_stopping = False
        emitter = Emitter()
        emitter.subscribe(self.events.append)
        owner = MembershipOwner(
            on_id=self._on_id,
            on_lost=lambda: self.told.append("lost"),
            on_back=lambda: self.told.append("back"),
            running=lambda: 3,
            is_quieted=lambda: self.is_quieted,
            is_stopping=lambda: self.is_stopping,
        )
        around = Surroundings(store=store, kinds={}, settings=WorkerSettings(lease="30s"), emitter=emitter, clock=clock)
        self.membership = Membership(around, a_worker(name="mill"), owner)

    def _on_id(self, worker_id: WorkerId | None, heartbeat: Heartbeat | None) -> None:
        assert (worker_id is None) == (heartbeat is None)
        self.ids.append(worker_id)
        self.told.append("none" if worker_id is None else "id")


@pytest.fixture
async def house(store: Store, clock: ManualClock) -> AsyncIterator[House]:
    house = House(store, clock)
    yield house
    await house.membership.stop_entering()
    await house.membership.stop_beating()


async def lose(membership: Membership) -> None:
    await membership.stop_beating()
    membership.lost()


async def test_a_lost_id_is_replaced_after_everything_under_it_was_stopped(house: House, store: Store) -> None:
    await house.membership.enter()
    house.is_quieted = True
    await lose(house.membership)
    await until(lambda: "back" in house.told)
    assert house.told == ["id", "none", "lost", "id", "back"]
    first, none, new = house.ids
    assert first is not None
    assert new is not None
    assert (none, new == first, house.membership.worker_id) == (None, False, new)
    assert house.events == [WorkerLost("mill", first, 3)]
    assert await store.wants_quiet(new), "an operator's request goes with the worker, not with its id"


async def test_a_worker_that_stops_gets_no_new_id(house: House) -> None:
    await house.membership.enter()
    house.is_stopping = True
    await lose(house.membership)
    assert house.membership._entering is not None
    await house.membership._entering
    assert house.told == ["id", "none", "lost"]


async def test_it_counts_as_alive_only_while_no_other_worker_can_have_declared_it_dead(
    house: House, clock: ManualClock
) -> None:
    assert not house.membership.is_surely_alive()
    await house.membership.enter()
    await house.membership.stop_beating()
    assert house.membership.is_surely_alive()
    clock.move(23 * SECOND)
    assert house.membership.is_surely_alive()
    clock.move(2 * SECOND)
    assert not house.membership.is_surely_alive()
