"""Orders, and how they stand."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from perdure import JobView
from perdure.testing import Sandbox
from perdure_systems.authorities import jobs
from perdure_systems.authorities.csr import read_request
from perdure_systems.authorities.orders import OrderView, find_order
from perdure_systems.authorities.settings import Authority
from perdure_systems.authorities.standins import new_request

T = TypeVar("T")
D4 = [0, 5, 20, 65, 185, 485, 600]
PATIENCE = 30.0


async def order(authority: Authority, *names: str) -> str:
    """Place an order; its id."""
    handle = await jobs.issue(authority, read_request(new_request(*(names or ("shop.example",)))))
    view = await handle.view()
    assert view.ref is not None
    return view.ref


async def view_of(order_id: str) -> JobView:
    return await (await jobs.app.desk("test")).job_by_ref(order_id)


async def after_a_drain(box: Sandbox, authority: Authority) -> OrderView:
    """A new order, once all that is due was done."""
    order_id = await order(authority)
    await box.drain()
    return await find_order(order_id)


async def until(look: Callable[[], Awaitable[T | None]]) -> T:
    """What a look finds, as soon as it finds something."""
    async with asyncio.timeout(PATIENCE):
        while not (found := await look()):
            await asyncio.sleep(0.05)
    return found
