"""What an operator has paused is not run, costs nothing, and goes on when the pause is over."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from tests.support.builders.gates import PATIENT, costs, paused, standing
from tests.support.builders.jobs import HOUR, SECOND, enqueue, show
from tests.support.waiting import until
from tests.support.working import Shift, at_work, seen

from perdure import App, JobState
from perdure.clock import ManualClock
from perdure.domain.gate import Pause
from perdure.domain.operate.audit import By
from perdure.errors import StoreUnavailable
from perdure.events import Emitter, JobsPaused, JobsResumed
from perdure.operate.commands.holds import Holds
from perdure.operate.desk import Desk
from perdure.storage.port import Store
from perdure.testing import Sandbox
from perdure.worker.gates.pauses import Pauser, Pauses

UNUSED = "sqlite:///unused.db"


def shop() -> tuple[App, list[str]]:
    app, ran = App(UNUSED), list[str]()

    @app.job
    async def greet(name: str) -> None:
        ran.append(name)

    @app.job
    async def wave(name: str) -> None:
        ran.append(name)

    return app, ran


def holds(store: Store) -> Holds:
    return Desk(store, "ops").holds


async def heard(shift: Shift, number: int = 1) -> None:
    """Wait until the worker knows of so many pauses."""
    known = shift.worker._parts.attempts.pauses
    await until(lambda: len(known.rules) + len(known.queues) == number)


async def test_a_paused_queue_is_not_claimed_from_and_others_get_its_share(store: Store) -> None:
    app, ran = shop()
    async with at_work(store, app, queues="default:9,mail", concurrency=2) as shift:
        pause = await holds(store).pause(queue="default", why="moving house")
        await heard(shift)
        held = await enqueue(store)
        others = [await enqueue(store, queue="mail", args='{"name":"Eve"}') for _ in range(5)]
        for job_id in others:
            await seen(store, job_id, JobState.SUCCEEDED)
        assert (await show(store, held)).state is JobState.READY
        await store.resume([pause.id], By("ops"))
        await seen(store, held, JobState.SUCCEEDED)
    assert ran == ["Eve"] * 5 + ["Ada"]


async def test_jobs_of_a_paused_kind_are_on_hold_until_it_is_resumed(store: Store) -> None:
    app, ran = shop()
    async with at_work(store, app) as shift:
        pause = await holds(store).pause(kind="greet", why="wrong names")
        await heard(shift)
        held = await seen(store, await enqueue(store), JobState.PAUSED)
        await seen(store, await enqueue(store, kind="wave"), JobState.SUCCEEDED)
        assert held.reason == f"on hold: pause {pause.id}: wrong names"
        assert held.due_at is None
        assert costs([held]) == {(0, 0)}
        assert shift.worker.held == {"on hold": 1}
        assert await store.resume([pause.id], By("ops")) == 1
        await heard(shift, 0)
        await seen(store, held.id, JobState.SUCCEEDED)
    assert len(ran) == 2


async def test_jobs_with_certain_arguments_are_on_hold_until_the_time_is_over(store: Store, clock: ManualClock) -> None:
    app, ran = shop()
    async with at_work(store, app, **PATIENT) as shift:
        pause = await holds(store).pause(kind="greet", args={"name": "Ada"}, until=clock.now() + HOUR)
        await heard(shift)
        held = await seen(store, await enqueue(store), JobState.PAUSED)
        await seen(store, await enqueue(store, args='{"name":"Eve"}'), JobState.SUCCEEDED)
        assert held.due_at == pause.until
        assert held.reason == f"on hold: pause {pause.id}: by ops"
        clock.move(HOUR + SECOND)
        await seen(store, held.id, JobState.SUCCEEDED)
    assert ran == ["Eve", "Ada"]


class Deaf:
    """A store whose pauses cannot be read until the test lets them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.is_deaf = True
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def pauses(self) -> list[Pause]:
        self.asked += 1
        if self.is_deaf:
            raise StoreUnavailable("gone")
        return await self._store.pauses()


async def test_a_worker_that_does_not_know_yet_what_is_paused_runs_nothing(store: Store) -> None:
    app, ran = shop()
    deaf = Deaf(store)
    await holds(store).pause(kind="greet")
    await enqueue(store)
    other = await enqueue(store, kind="wave")
    async with at_work(cast("Store", deaf), app) as shift:
        await until(lambda: deaf.asked)
        shift.worker.wake()
        await asyncio.sleep(0.05)
        await standing(store, ready=2)
        deaf.is_deaf = False
        await seen(store, other, JobState.SUCCEEDED)
        assert len(paused(await standing(store, succeeded=1, paused=1))) == 1
    assert len(ran) == 1


async def test_a_job_that_was_put_on_hold_too_late_is_set_free(store: Store) -> None:
    """The pause was over, and the worker had not heard of it."""
    app, ran = shop()
    async with at_work(store, app) as shift:
        pause = await holds(store).pause(kind="greet")
        await heard(shift)
        await store.resume([pause.id], By("ops"))
        shift.worker._parts.attempts.pauses.learn([pause])
        await enqueue(store)
        await until(lambda: ran)
    await standing(store, succeeded=1)


async def test_what_is_put_on_hold_just_after_a_pause_has_ended_is_set_free_at_the_next_look(store: Store) -> None:
    ended: list[int] = []
    pauses = Pauses()
    pauser = Pauser(store, Emitter(), pauses, lambda: None, lambda: ended.append(pauser.ticks))
    pause = await holds(store).pause(kind="greet")
    await pauser.tick()
    await store.resume([pause.id], By("ops"))
    calls = []
    for _ in range(3):
        await pauser.tick()
        calls.append(len(ended))
    assert calls == [1, 2, 2]


async def test_a_sandbox_heeds_pauses() -> None:
    app, ran = App(UNUSED), list[str]()

    @app.job(queue="mail")
    async def greet(name: str) -> None:
        ran.append(name)

    @app.job
    async def wave(name: str) -> None:
        ran.append(name)

    async with Sandbox(app, inline=True) as box:
        operator = (await app.desk("ops")).holds
        await operator.pause(queue="mail")
        await operator.pause(kind="wave", args={"name": "Ada"})
        for name in ("Ada", "Eve"):
            await greet.enqueue(name)
            await wave.enqueue(name)
        assert ran == ["Eve"]
        await operator.resume(queue="mail")
        await operator.resume(kind="wave")
        await box.drain()
    assert sorted(ran) == ["Ada", "Ada", "Eve", "Eve"]


async def test_a_worker_reports_pauses_and_their_end(store: Store, clock: ManualClock) -> None:
    """Who reads the log of a worker that does nothing finds out why."""
    app, _ = shop()
    before = await holds(store).pause(queue="mail")
    clock.move(SECOND)
    async with at_work(store, app) as shift:
        pause = await holds(store).pause(kind="greet", args={"name": "Ada"}, why="wrong names")
        await heard(shift, 2)
        await store.resume([pause.id], By("ops"))
        await heard(shift, 1)
    assert [event for event in shift.events if isinstance(event, JobsPaused | JobsResumed)] == [
        JobsPaused(before.id, "mail", None, None, None, "ops", ""),
        JobsPaused(pause.id, None, "greet", '{"name":"Ada"}', None, "ops", "wrong names"),
        JobsResumed(pause.id, None, "greet"),
    ]
