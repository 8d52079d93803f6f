"""Gates before a run (C11, E8, G8): exact over all workers, at no cost to the job, and over by themselves."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, cast

import pytest
from tests.conftest import OpenStore
from tests.support.builders.gates import PATIENT, costs, isolated, paused, some, standing, views
from tests.support.builders.jobs import DAY, HOUR, MINUTE, SECOND, enqueue, show
from tests.support.waiting import until
from tests.support.working import at_work, found, seen

from perdure import App, ArgumentError, Budget, Concurrency, Context, JobState, JobView, Rate, Retry, SettingsError
from perdure.clock import ManualClock, SystemClock
from perdure.domain.gate import GateRequest, Held, NearLimit
from perdure.domain.jobs.ids import JobId, WorkerId
from perdure.errors import StoreUnavailable
from perdure.events import Emitter, Event, GateNearlyFull, JobDied, LoopFailed, StoreRecovered, StoreTrouble
from perdure.storage.gates import Gatekeeper
from perdure.storage.port import Store
from perdure.testing import Sandbox
from perdure.worker.gates.near_limits import NearLimits

UNUSED = "sqlite:///unused.db"


class Crowd:
    """Counts who is inside at once, in all and by key."""

    def __init__(self) -> None:
        self.inside: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.ran: Counter[str] = Counter()

    async def visit(self, key: str = "all") -> None:
        self.inside[key] += 1
        self.ran[key] += 1
        self.most[key] = max(self.most[key], self.inside[key])
        await asyncio.sleep(0.002)
        self.inside[key] -= 1


async def test_g8_never_more_than_n_run_at_once_over_all_workers_and_all_finish(
    real_time_store: Store,
) -> None:
    app, crowd = App(UNUSED), Crowd()

    @app.job(gates=[Concurrency(2)])
    async def greet(name: str) -> None:
        await crowd.visit()

    other = real_time_store.sibling()
    await other.open()
    try:
        jobs = await some(real_time_store, 200)
        async with at_work(real_time_store, app, concurrency=50), at_work(other, app, concurrency=50):
            await until(lambda: crowd.ran["all"] >= len(jobs), within=60)
            done = await standing(real_time_store, succeeded=200)
    finally:
        await other.close()
    assert crowd.most["all"] == 2
    assert crowd.ran["all"] == 200
    assert costs(done) == {(0, 0)}


async def test_g8_each_value_of_a_key_has_slots_of_its_own(real_time_store: Store) -> None:
    app, crowd = App(UNUSED), Crowd()

    @app.job(gates=[Concurrency(1, key="name")])
    async def greet(name: str) -> None:
        await crowd.visit(name)

    for _ in range(5):
        for name in ("Ada", "Eve"):
            await enqueue(real_time_store, args=f'{{"name":"{name}"}}')
    async with at_work(real_time_store, app):
        await standing(real_time_store, succeeded=10)
    assert crowd.most == {"Ada": 1, "Eve": 1}


async def test_c11_a_rate_holds_what_comes_too_soon_says_why_and_resumes_by_itself(
    store: Store, clock: ManualClock, other_store: OpenStore
) -> None:
    """⚠ in the original a gated job never came back."""
    app, ran = App(UNUSED), list[str]()

    @app.job(gates=[Rate(6, "1m")])
    async def greet(name: str) -> None:
        ran.append(name)

    await some(store, 10)
    async with at_work(store, app, **PATIENT) as one, at_work(await other_store(), app, **PATIENT) as two:
        waiting = paused(await standing(store, succeeded=6, paused=4))
        assert len(ran) == 6
        for view in waiting:
            assert view.reason.startswith("rate limited: greet: 6 of 6 starts in 1m")
            assert view.due_at == clock.now() + MINUTE
        assert costs(waiting) == {(0, 0)}
        assert one.worker.held.get("rate limited", 0) + two.worker.held.get("rate limited", 0) == 4
        clock.move(MINUTE - SECOND)
        await asyncio.sleep(0)
        assert len(paused(await views(store))) == 4
        clock.move(SECOND)
        await standing(store, succeeded=10)
    assert len(ran) == 10


async def test_c11_a_budget_holds_and_resumes_by_itself_when_the_window_has_passed(
    store: Store, clock: ManualClock
) -> None:
    app = App(UNUSED)

    @app.job(gates=[Budget("api", daily=10, estimate=4)])
    async def greet(ctx: Context, name: str) -> None:
        await ctx.spend(3)
        await ctx.spend(2)

    await some(store, 3)
    async with at_work(store, app, **PATIENT | {"concurrency": 1}):
        [held] = paused(await standing(store, succeeded=2, paused=1))
        assert held.reason.startswith("budget exceeded: api: 10 of 10 spent in 1d, estimate 4")
        assert await store.spent("api", clock.now() - DAY) == 10
        assert costs([held]) == {(0, 0)}
        clock.move(DAY - HOUR)
        held_again = await found(lambda: held_later(store, held.id, clock))
        assert held_again.reason.startswith("budget exceeded")
        clock.move(HOUR + SECOND)
        await standing(store, succeeded=3)


async def held_later(store: Store, job_id: JobId, clock: ManualClock) -> JobView | None:
    """The job, once it has looked again and is held until a time to come."""
    view = await show(store, job_id)
    return view if view.state is JobState.PAUSED and view.due_at and view.due_at > clock.now() else None


async def test_c11_what_is_spent_takes_the_place_of_the_estimate(store: Store, clock: ManualClock) -> None:
    app = App(UNUSED)

    @app.job(gates=[Budget("api", daily=10, estimate=6)])
    def greet(ctx: Context, name: str) -> None:
        ctx.spend(0.5)

    await some(store, 5)
    async with at_work(store, app, **PATIENT | {"concurrency": 1}):
        await standing(store, succeeded=5)
    assert await store.spent("api", clock.now() - DAY) == 2.5


async def test_e8_a_gate_that_is_four_fifths_full_is_reported_once(store: Store) -> None:
    app = App(UNUSED)

    @app.job(gates=[Budget("quota", daily=100, monthly=100), Rate(5, "1h", name="calls")])
    async def greet(ctx: Context, name: str) -> None:
        await ctx.spend(19)

    await some(store, 5)
    async with at_work(store, app, **PATIENT | {"concurrency": 1}) as shift:
        await standing(store, succeeded=5)
        told = [(event.gate, event.used, event.limit, event.per) for event in shift.told(GateNearlyFull)]
    assert sorted(told) == [("calls", 4, 5, "1h"), ("quota", 95, 100, "1d"), ("quota", 95, 100, "30d")]


async def test_a_job_that_must_wait_for_one_gate_takes_nothing_of_the_others(store: Store, clock: ManualClock) -> None:
    app, ran = App(UNUSED), list[str]()

    @app.job(gates=[Rate(1, "1m"), Concurrency(1, name="slot"), Budget("api", daily=2, estimate=1)])
    async def greet(name: str) -> None:
        ran.append(name)

    await some(store, 3)
    async with at_work(store, app, **PATIENT):
        await standing(store, succeeded=1, paused=2)
        assert await store.spent("api", clock.now() - DAY) == 0  # no job runs, and no job has recorded spending
        clock.move(MINUTE)
        await standing(store, succeeded=2, paused=1)
    assert len(ran) == 2


async def test_what_has_no_gate_does_not_ask(store: Store) -> None:
    app, gates = App(UNUSED), Gates(store)

    @app.job
    async def greet(name: str) -> str:
        return name

    async with at_work(cast("Store", gates), app):
        await seen(store, await enqueue(store), JobState.SUCCEEDED)
    assert gates.asked == []


async def test_a_key_that_cannot_be_made_is_a_bad_argument(store: Store) -> None:
    app = App(UNUSED)

    @app.job(gates=[Concurrency(1, key=lambda args: args["name"].tenant)])
    async def greet(name: str) -> str:
        return name

    async with at_work(store, app) as shift:
        view = await seen(store, await enqueue(store), JobState.DEAD)
        assert view.reason == "arguments do not fit the handler"
        assert "of gate greet raised AttributeError" in str(view.last_error)
        assert len(shift.told(JobDied)) == 1
        broken = await seen(store, await enqueue(store, args='{"nom":1}'), JobState.DEAD)
        assert broken.reason == "arguments do not fit the handler"


class Gates:
    """A store whose gates can be in trouble, or slow, or refuse certain jobs."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.asked: list[int] = []
        self.trouble: Exception | None = None
        self.poison: set[str] = set()
        self.free = asyncio.Event()
        self.free.set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def pass_gates(
        self, requests: Sequence[GateRequest], decide: Gatekeeper, borrower: WorkerId | None = None
    ) -> list[Held | None]:
        self.asked.append(len(requests))
        await self.free.wait()
        if self.trouble is not None:
            raise self.trouble
        if any(request.claim.job_id in self.poison for request in requests):
            raise ValueError("no such key")
        return await self._store.pass_gates(requests, decide, borrower)


def gated() -> tuple[App, list[str]]:
    app, ran = App(UNUSED), list[str]()

    @app.job(gates=[Concurrency(10)])
    async def greet(name: str) -> None:
        ran.append(name)

    return app, ran


async def test_claims_that_stand_before_a_gate_hold_a_slot_and_ask_together(store: Store) -> None:
    app, _ = gated()
    gates = Gates(store)
    gates.free.clear()
    await some(store, 7)
    async with at_work(cast("Store", gates), app, concurrency=3) as shift:
        await until(lambda: gates.asked)
        await asyncio.sleep(0.1)
        claimed = [view for view in await views(store) if view.state is JobState.RUNNING]
        assert len(claimed) == 3
        assert shift.worker.running == 0
        gates.free.set()
        await standing(store, succeeded=7)
    assert len(gates.asked) < 7


async def test_a_closing_worker_gives_back_what_stands_before_a_gate(store: Store) -> None:
    app, ran = gated()
    gates = Gates(store)
    gates.free.clear()
    await some(store, 5)
    async with at_work(cast("Store", gates), app, stop_timeout="5s") as shift:
        await until(lambda: gates.asked)
        closing = asyncio.create_task(shift.stopped())
        await asyncio.sleep(0.05)
        gates.free.set()
        await closing
    assert ran == []
    assert costs(await standing(store, ready=5)) == {(0, 0)}
    assert await store.release_gates(["greet"]) == 0


async def test_c4_claims_are_kept_while_the_store_is_away_and_run_when_it_is_back(store: Store) -> None:
    app, ran = gated()
    gates = Gates(store)
    gates.trouble = StoreUnavailable("gone")
    await some(store, 3)
    async with at_work(cast("Store", gates), app) as shift:
        await until(lambda: len(gates.asked) > 2)
        gates.trouble = None
        done = await standing(store, succeeded=3)
        assert shift.told(StoreTrouble)[0].what == "gates"
        assert [event.what for event in shift.told(StoreRecovered)] == ["gates"]
    assert len(ran) == 3
    assert costs(done) == {(0, 0)}


async def test_a_request_that_cannot_be_asked_delays_no_other_job(store: Store) -> None:
    app, ran = gated()
    gates = Gates(store)
    jobs = await some(store, 4)
    gates.poison = {jobs[1]}
    async with at_work(cast("Store", gates), app) as shift:
        [held] = paused(await standing(store, succeeded=3, paused=1))
        assert held.id == jobs[1]
        assert "no such key" in held.reason
        assert "no such key" in shift.told(LoopFailed)[0].error
    assert len(ran) == 3
    assert costs([held]) == {(0, 0)}


async def test_a_slot_is_passed_on_however_its_attempt_ends(store: Store) -> None:
    """A failure frees it as a success does, and no job waits for a timer: the clock stands still."""
    app, ran = App(UNUSED), list[str]()

    @app.job(gates=[Concurrency(1)], retry=Retry(attempts=1))
    async def greet(ctx: Context, name: str) -> None:
        ran.append(ctx.job_id)
        if len(ran) == 1:
            async with ctx.transaction():
                return
        raise ValueError("no")

    await some(store, 4)
    async with at_work(store, app, **PATIENT):
        await until(lambda: len(set(ran)) == 4)


async def test_what_is_spent_in_a_process_of_its_own_is_recorded_too(real_time_store: Store) -> None:
    async with at_work(real_time_store, isolated):
        paid = await seen(real_time_store, await enqueue(real_time_store, kind="pay", args='{"amount":2}'))
        later = await seen(real_time_store, await enqueue(real_time_store, kind="pay_later", args='{"amount":1.5}'))
    assert (paid.state, later.state) == (JobState.SUCCEEDED, JobState.SUCCEEDED)
    assert "petty cash is not one that job pay declares: api" in str(paid.result)
    assert await real_time_store.spent("api", paid.created_at - DAY) == 5


@pytest.mark.parametrize("amount", [-1, float("nan"), float("inf"), "3", True])
async def test_what_cannot_have_been_spent_is_refused(store: Store, amount: Any) -> None:
    app, refused = App(UNUSED), list[ArgumentError]()

    @app.job(gates=[Budget("api", daily=1)])
    async def greet(ctx: Context, name: str) -> None:
        try:
            await ctx.spend(amount)
        except ArgumentError as error:
            refused.append(error)

    async with at_work(store, app):
        await seen(store, await enqueue(store), JobState.SUCCEEDED)
    assert [error.field for error in refused] == ["amount"]


@pytest.mark.parametrize(
    ("gates", "budget", "says"),
    [
        ([], None, "job greet declares none"),
        ([Budget("a", daily=1), Budget("b", daily=1)], None, "must say which: job greet declares a, b"),
        ([Budget("a", daily=1)], "c", "c is not one that job greet declares: a"),
    ],
)
async def test_a_budget_that_is_not_declared_cannot_be_spent_from(
    store: Store, gates: list[Budget], budget: str | None, says: str
) -> None:
    app = App(UNUSED)

    @app.job(gates=gates, retry=Retry(attempts=1))
    def greet(ctx: Context, name: str) -> str:
        with pytest.raises(ArgumentError) as refused:
            ctx.spend(1, budget)
        return str(refused.value)

    async with at_work(store, app):
        view = await seen(store, await enqueue(store), JobState.SUCCEEDED)
    assert says in str(view.result)


async def test_what_is_spent_beside_a_transaction_is_refused(store: Store) -> None:
    app = App(UNUSED)

    @app.job(gates=[Budget("a", daily=1)])
    async def greet(ctx: Context, name: str) -> None:
        async with ctx.transaction():
            await ctx.spend(1)

    async with at_work(store, app):
        view = await seen(store, await enqueue(store), JobState.RETRYING, JobState.DEAD)
    assert "ctx.spend() after ctx.transaction()" in str(view.last_error)


def test_gates_are_checked_where_they_are_declared() -> None:
    app = App(UNUSED)
    with pytest.raises(SettingsError, match="tenant"):
        app.job(gates=[Concurrency(1, key="tenant")], name="w")(lambda: None)
    with pytest.raises(SettingsError, match="gates"):
        app.job(gates=["6/m"], name="x")(lambda: None)  # type: ignore[list-item]
    with pytest.raises(SettingsError, match="breaker"):
        app.job(breaker="digicert", name="y")(lambda: None)  # type: ignore[call-overload]


async def test_c11_a_sandbox_asks_the_gates_too() -> None:
    app, ran = App(UNUSED), list[int]()

    @app.job(gates=Rate(2, "1m"))
    async def call(n: int) -> None:
        ran.append(n)

    async with Sandbox(app) as box:
        for n in range(3):
            await call.enqueue(n)
        first = await box.drain()
        assert (ran, first.attempts, first.left) == ([0, 1], 2, 1)
        second = await box.drain(travel=timedelta(minutes=1))
        assert (ran, second.left) == ([0, 1, 2], 0)


async def test_g8_a_sandbox_runs_all_that_share_a_slot() -> None:
    app, crowd = App(UNUSED), Crowd()

    @app.job(gates=Concurrency(1))
    async def call(n: int) -> None:
        await crowd.visit()

    async with Sandbox(app) as box:
        for n in range(5):
            await call.enqueue(n)
        drained = await box.drain(concurrency=5)
    assert (drained.left, crowd.ran["all"], crowd.most["all"]) == (0, 5, 1)


def test_e8_what_is_used_is_reported_in_round_numbers() -> None:
    """Eight times 0.1 is 0.7999999999999999."""
    told, emitter = list[Event](), Emitter()
    emitter.subscribe(told.append)
    NearLimits(emitter, SystemClock()).warn([NearLimit("openai", sum([0.1] * 8), 1.0, DAY)])
    assert told == [GateNearlyFull("openai", 0.8, 1.0, "1d")]
