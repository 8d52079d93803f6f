"""A unique key that is released: jobs waiting for it get it at once."""

from __future__ import annotations

import asyncio

from tests.support.builders.gates import views
from tests.support.builders.jobs import a_key, enqueue
from tests.support.waiting import until
from tests.support.working import at_work

from perdure import App, JobState
from perdure.domain.jobs.states import Reason
from perdure.storage.port import Store


async def test_a_job_that_waits_for_a_unique_key_starts_when_the_key_is_free(real_time_store: Store) -> None:
    """Well before the 30 seconds after which it looks again by itself."""
    app, may_end, begun = App("sqlite:///unused.db"), asyncio.Event(), list[str]()

    @app.job
    async def greet(name: str) -> None:
        begun.append(name)
        await may_end.wait()

    one_at_a_time = a_key(states=frozenset({JobState.RUNNING}))
    for _ in range(3):
        await enqueue(real_time_store, unique=one_at_a_time)

    async def held() -> int:
        return sum(view.reason == Reason.KEY_HELD for view in await views(real_time_store))

    async with at_work(real_time_store, app):
        await until(lambda: len(begun) == 1)
        async with asyncio.timeout(20):
            while await held() < 2:
                await asyncio.sleep(0.01)
        may_end.set()
        await until(lambda: len(begun) == 3, within=20)
