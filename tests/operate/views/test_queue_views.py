"""Queues at a glance: who serves them."""

from __future__ import annotations

from tests.support.builders.jobs import SECOND, employ, enqueue

from perdure.clock import ManualClock
from perdure.operate.desk import Desk
from perdure.operate.health.checkup import ASSUMED_LEASE
from perdure.storage.port import Store


async def test_a_worker_that_sends_no_heartbeat_serves_no_queue(store: Store, clock: ManualClock) -> None:
    """As in the list of what needs a person, which says that nobody serves it."""
    await enqueue(store, queue="mail")
    await employ(store, name="old", queues=("mail",), concurrency=4)
    clock.move(by=ASSUMED_LEASE + SECOND)
    [lost] = await Desk(store, "ada").queues()
    assert (lost.name, lost.workers, lost.slots) == ("mail", 0, 0)
    await employ(store, name="new", queues=("mail",), concurrency=3)
    [served] = await Desk(store, "ada").queues()
    assert (served.workers, served.slots) == (1, 3)
