"""A worker records the gates that each attempt passes, at no request of its own (C11)."""

from __future__ import annotations

import asyncio

from tests.support.builders.gates import PATIENT, paused, some, standing, views
from tests.support.builders.jobs import MINUTE, SECOND, enqueue
from tests.support.builders.loans import UNUSED
from tests.support.builders.loans import Desk as CountingStore
from tests.support.waiting import until
from tests.support.working import at_work, found, seen

from perdure import App, Backoff, Breaker, Budget, Concurrency, Context, JobState, Rate, Retry, Snooze
from perdure.clock import ManualClock
from perdure.domain.gate_record import GateVisit
from perdure.domain.jobs.ids import JobId
from perdure.events import JobsPaused
from perdure.operate.desk import Desk
from perdure.storage.port import Store

AT_ONCE = Retry(attempts=2, backoff=Backoff.fixed("0s"))


async def visits(store: Store, job_id: JobId) -> list[GateVisit]:
    """The gates that the one attempt of a job has met."""
    [record] = await store.gate_records(job_id)
    return list(record.visits)


async def test_c11_a_rate_that_holds_a_job_is_recorded_with_its_wait_and_its_pass(
    store: Store, clock: ManualClock
) -> None:
    app = App(UNUSED)

    @app.job(gates=[Rate(1, "1m", key="name", name="mail")])
    async def greet(name: str) -> None: ...

    begun = clock.now()
    await some(store, 2)
    async with at_work(store, app, **PATIENT):
        [held] = paused(await standing(store, succeeded=1, paused=1))
        [visit] = await visits(store, held.id)
        assert (visit.is_held, visit.passed_at) == (True, None)
        assert held.reason == f"rate limited: {visit.key}: {visit.note}"
        clock.move(MINUTE)
        await standing(store, succeeded=2)
    [visit] = await visits(store, held.id)
    assert (visit.gate, visit.key) == ("rate", 'mail:"Ada"')
    assert (visit.held_since, visit.held_until, visit.held_seconds) == (begun, begun + MINUTE, 60)
    assert visit.passed_at == begun + MINUTE


async def test_c11_a_slot_is_recorded_for_jobs_that_ask_use_a_loan_or_wait(store: Store, clock: ManualClock) -> None:
    counting, app, inside, leave = CountingStore(store), App(UNUSED), list[str](), asyncio.Event()

    @app.job(gates=[Concurrency(20, name="lent")])
    async def lent(name: str) -> None: ...

    @app.job(gates=[Concurrency(1, name="own")])
    async def own(name: str) -> None:
        inside.append(name)
        await leave.wait()

    async with at_work(counting.store, app, **PATIENT):
        asked = await enqueue(store, kind="lent")
        await seen(store, asked)
        without = await enqueue(store, kind="lent")
        await seen(store, without)
        assert counting.asked == [1]
        first = await enqueue(store, kind="own")
        await until(lambda: len(inside) == 1)
        second = await enqueue(store, kind="own")
        await standing(store, succeeded=2, running=1, paused=1)
        clock.move(2 * SECOND)
        leave.set()
        await standing(store, succeeded=4)
    for job_id in (asked, without):
        [visit] = await visits(store, job_id)
        assert (visit.gate, visit.key, visit.held_since, visit.passes) == ("concurrency", "lent", None, 1)
        assert visit.passed_at is not None
    [visit] = await visits(store, first)
    assert (visit.key, visit.held_seconds) == ("own", 0)
    [visit] = await visits(store, second)
    assert (visit.held_seconds, visit.passes, visit.passed_at) == (2, 1, clock.now())


async def test_c11_budget_and_breaker_are_recorded_in_each_attempt(store: Store) -> None:
    app = App(UNUSED)

    @app.job(gates=[Budget("ai", daily=10, estimate=0.3)], breaker=Breaker("model"), retry=AT_ONCE)
    async def greet(name: str) -> None:
        raise ValueError(name)

    job_id = await enqueue(store)
    async with at_work(store, app):
        await seen(store, job_id, JobState.DEAD)
    records = await store.gate_records(job_id)
    assert [record.attempt for record in records] == [1, 2]
    for record in records:
        assert [(visit.gate, visit.key, visit.estimate, visit.passes) for visit in record.visits] == [
            ("breaker", "model", None, 1),
            ("budget", "ai", 0.3, 1),
        ]


async def test_c11_a_breaker_that_is_open_is_recorded_as_a_hold(store: Store, clock: ManualClock) -> None:
    app = App(UNUSED)

    @app.job(breaker=Breaker("model"))
    async def greet(name: str) -> None: ...

    desk = Desk(store, "ops")
    await desk.holds.open_breaker("model", why="maintenance")
    job_id = await enqueue(store)
    async with at_work(store, app, **PATIENT):
        await seen(store, job_id, JobState.PAUSED)
        [visit] = await visits(store, job_id)
        assert (visit.gate, visit.key, visit.is_held) == ("breaker", "model", True)
        assert "opened by hand: maintenance, until" in str(visit.note)
        clock.move(MINUTE)
        await desk.holds.close_breaker("model")
        await seen(store, job_id)
    [visit] = await visits(store, job_id)
    assert (visit.held_seconds, visit.passes) == (60, 1)


async def test_an_attempt_that_comes_back_passes_its_slot_again_and_its_rate_once(
    store: Store, clock: ManualClock
) -> None:
    app, runs = App(UNUSED), list[str]()

    @app.job(gates=[Rate(5, "1m"), Concurrency(1)])
    async def greet(name: str) -> None:
        runs.append(name)
        if len(runs) < 3:
            raise Snooze("1m")

    job_id = await enqueue(store)
    async with at_work(store, app, **PATIENT):
        for run in range(1, 3):
            await found(lambda run=run: _is_waiting(store, run, runs))  # type: ignore[misc]
            clock.move(MINUTE)
        await seen(store, job_id)
    assert [(visit.gate, visit.passes) for visit in await visits(store, job_id)] == [("rate", 1), ("concurrency", 3)]


async def _is_waiting(store: Store, run: int, runs: list[str]) -> bool | None:
    [view] = await views(store)
    return (view.state is JobState.WAITING and len(runs) == run) or None


async def test_a_pause_is_not_charged_to_the_gate_that_held_the_job_before(store: Store, clock: ManualClock) -> None:
    app = App(UNUSED)

    @app.job(gates=[Rate(1, "1m")])
    async def greet(name: str) -> None: ...

    desk = Desk(store, "ops")
    await some(store, 2)
    async with at_work(store, app, **PATIENT) as shift:
        [held] = paused(await standing(store, succeeded=1, paused=1))
        pause = await desk.holds.pause(kind="greet", why="inventory")
        await until(lambda: bool(shift.told(JobsPaused)))
        clock.move(MINUTE)

        async def is_on_hold() -> bool | None:
            return (await views(store, ids=(held.id,)))[0].reason.startswith("on hold") or None

        await found(is_on_hold)
        clock.move(MINUTE)
        await desk.holds.resume(pause.id)
        await seen(store, held.id)
    [visit] = await visits(store, held.id)
    assert visit.held_seconds == 60


async def test_jobs_without_gates_have_no_record(store: Store) -> None:
    app = App(UNUSED)

    @app.job
    async def greet(ctx: Context, name: str) -> None: ...

    job_id = await enqueue(store)
    async with at_work(store, app):
        await seen(store, job_id)
    assert await store.gate_records(job_id) == []
