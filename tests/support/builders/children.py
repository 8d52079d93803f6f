"""Parents and children under real workers: children that wait until the test tells them how to end."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.support.builders.jobs import show

from perdure import App, Call, JobView, Permanent, Retry
from perdure.domain.jobs.ids import JobId
from perdure.storage.port import Store

ONCE = Retry(attempts=1)


class Gate:
    """Children that wait until they are told what to do."""

    def __init__(self) -> None:
        self.orders: dict[int, asyncio.Future[str]] = {}
        self.runs: list[int] = []

    async def pass_through(self, number: int) -> int:
        self.runs.append(number)
        order = self.orders.setdefault(number, asyncio.get_running_loop().create_future())
        if await asyncio.shield(order) == "die":
            raise Permanent(f"number {number} is broken")
        return number * 10

    def tell(self, *numbers: int, order: str = "succeed") -> None:
        for number in numbers:
            self.orders.setdefault(number, asyncio.get_running_loop().create_future()).set_result(order)


async def put(store: Store, call: Call[Any]) -> JobId:
    [receipt] = await store.insert([call.job])
    return receipt.job_id


def gated(app: App, gate: Gate) -> Any:
    @app.job(name="child", retry=ONCE)
    async def child(number: int) -> int:
        return await gate.pass_through(number)

    return child


async def child_of(store: Store, parent: JobId, number: int, family: str = "gather") -> JobView:
    return await show(store, (await store.children(parent, family))[number].job_id)
