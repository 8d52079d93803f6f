"""Real workers and real processes: a wait holds none of them, and a killed one costs no poll."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from systems.tests.authorities.support import order, until
from systems.tests.engines import on_sqlite

from perdure import App, Worker, WorkerSettings
from perdure.testing import Sandbox
from perdure_systems.authorities import jobs
from perdure_systems.authorities.orders import OrderView, find_order
from perdure_systems.authorities.settings import Authority
from perdure_systems.authorities.standins import StandIns


@asynccontextmanager
async def at_work(app: App, **settings: object) -> AsyncIterator[Worker]:
    worker = await app.worker(WorkerSettings(poll="100ms", stop_timeout="5s", **settings))  # type: ignore[arg-type]
    running = asyncio.create_task(worker.run())
    try:
        await worker.started()
        yield worker
    finally:
        worker.stop()
        await running


@contextmanager
def worker_process(url: str) -> Iterator[subprocess.Popen[bytes]]:
    """The system as an operator runs it, without its page."""
    command = [sys.executable, "-m", "perdure_systems", "authorities", "--no-http", "--url", url]
    process = subprocess.Popen(command, env=dict(os.environ), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def parked_after(order_id: str, polls: int) -> OrderView:
    async def look() -> OrderView | None:
        seen = await find_order(order_id)
        return seen if seen.status == "parked" and seen.polls >= polls else None

    return await until(look)


@on_sqlite
async def test_d5_a_wait_never_holds_a_worker(box: Sandbox, standins: StandIns) -> None:
    """A worker with one slot polls five orders side by side; the original's would still wait for the first."""
    standins.entrust.behaviour.approve_after = None
    standins.entrust.clock = time.monotonic
    async with at_work(jobs.app, concurrency=1) as worker:
        orders = [await order(Authority.ENTRUST, f"{number}.example") for number in range(5)]
        parked = [await parked_after(order_id, 1) for order_id in orders]
        assert worker.running == 0
    assert [seen.polls for seen in parked] == [1] * 5
    assert standins.entrust.asked[4] - standins.entrust.asked[0] < 4


async def test_d5_an_order_survives_a_killed_worker_with_its_poll_count(
    box: Sandbox, standins: StandIns, engine_url: str
) -> None:
    """Killed with -9 while it is parked: another process makes the next poll, and the order is not placed again."""
    standins.globalsign.behaviour.approve_after = 2
    standins.globalsign.clock = time.monotonic
    order_id = await order(Authority.GLOBALSIGN)
    with worker_process(engine_url) as first:
        await parked_after(order_id, 1)
        first.kill()
        first.wait()
    left = await find_order(order_id)
    assert (left.status, left.polls, len(standins.globalsign.asked)) == ("parked", 1, 1)
    with worker_process(engine_url):

        async def issued() -> OrderView | None:
            seen = await find_order(order_id)
            return seen if seen.status == "issued" else None

        done = await until(issued)
    assert (done.polls, len(standins.globalsign.asked)) == (2, 2)
    assert standins.globalsign.asked[1] - standins.globalsign.asked[0] >= 4
    assert [seen.method for seen in standins.globalsign.seen].count("POST") == 1


@on_sqlite
async def test_d4_cancellation_is_honoured_while_an_answer_is_awaited(
    box: Sandbox, standins: StandIns, engine_url: str
) -> None:
    standins.entrust.behaviour.latency = 29.0
    order_id = await order(Authority.ENTRUST)
    with worker_process(engine_url):

        async def asked() -> bool:
            return bool(standins.entrust.seen)

        async def cancelled() -> OrderView | None:
            seen = await find_order(order_id)
            return seen if seen.status == "cancelled" else None

        await until(asked)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await (await jobs.app.desk("operator")).cancel(order_id)
        await until(cancelled)
        assert loop.time() - begun < 15
