"""C4, C10: the error threshold and the longest backoff of an outage are settings, and reach every background task."""

from __future__ import annotations

import asyncio
import inspect
from collections import defaultdict
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from tests.support.bench import a_claim
from tests.support.timer import ManualTimer
from tests.support.waiting import until

from perdure import App, Budget, Context, Rate, SettingsError, WorkerSettings
from perdure.app.connect import store_for
from perdure.clock import SystemClock
from perdure.errors import StoreUnavailable
from perdure.events import Emitter, Event, StoreRecovered, StoreTrouble
from perdure.lifecycle.loops.loop import Loop
from perdure.lifecycle.outage import Outage
from perdure.policy.outage_backoff import OutageLimits
from perdure.storage.port import Store
from perdure.worker.claiming.quarantine import Quarantine
from perdure.worker.wiring.worker import build_worker

TEST_LIMITS = OutageLimits(errors=3, backoff=timedelta(seconds=5))
TEST_WAITS = [0.2, 0.2, 1, 2, 4, 5, 5]


@pytest.fixture
def timer(monkeypatch: pytest.MonkeyPatch) -> ManualTimer:
    """The time of every wait for the database."""
    timer = ManualTimer()
    monkeypatch.setattr(Outage, "timer", timer)
    return timer


class Told:
    """The events of an emitter."""

    def __init__(self) -> None:
        self.emitter = Emitter()
        self.events: list[Event] = []
        self.emitter.subscribe(self.events.append)

    def waits(self) -> dict[str, list[float]]:
        """The waits of each task that met database trouble."""
        waits: dict[str, list[float]] = defaultdict(list)
        for event in self.events:
            if isinstance(event, StoreTrouble):
                waits[event.what].append(event.wait)
        return waits


class Away:
    """A store whose calls fail once it is away; `broken` names those that fail before."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.broken = frozenset[str]()
        self.is_away = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not inspect.iscoroutinefunction(found):
            return found

        async def call(*args: Any, **options: Any) -> Any:
            if self.is_away or name in self.broken:
                raise StoreUnavailable("the server is gone")
            return await found(*args, **options)

        return call

    def wakeups(self) -> Any:
        raise StoreUnavailable("the server is gone")


class Jobs:
    """Jobs that need the database in every way, once they are told to go on."""

    def __init__(self) -> None:
        self.app = App("sqlite:///unused.db")
        self.go = asyncio.Event()
        self.under_way: list[str] = []
        calls = (self.checkpoints, self.steps, self.spends, self.ends)
        gates = {"spends": [Budget("money", daily=10)]}
        self.ready = [self.app.job(gates=gates.get(call.__name__, []))(call).call().job for call in calls]
        self.gated = self.app.job(gates=[Rate(5, per="1m")])(self.waits_at_gate).call().job

    async def checkpoints(self, ctx: Context) -> None:
        await self._begin(ctx)
        await ctx.checkpoint(1)

    async def steps(self, ctx: Context) -> None:
        await self._begin(ctx)
        await ctx.step("one", self._one)

    async def spends(self, ctx: Context) -> None:
        await self._begin(ctx)
        await ctx.spend(1)

    async def ends(self, ctx: Context) -> None:
        await self._begin(ctx)

    async def waits_at_gate(self) -> None:
        raise AssertionError("its gate is never asked")

    async def _one(self) -> int:
        return 1

    async def _begin(self, ctx: Context) -> None:
        self.under_way.append(ctx.kind)
        await self.go.wait()


async def test_c10_the_settings_for_tests_reach_every_task_of_a_worker(
    timer: ManualTimer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Loop, "timer", timer)
    jobs = Jobs()
    told = Told()
    store = store_for(f"sqlite:///{tmp_path / 'perdure.db'}")
    await store.open()
    await store.migrate()
    away = Away(store)
    settings = WorkerSettings(outage_errors=3, outage_backoff="5s", stop_timeout=0, grace="10ms")
    worker = build_worker(
        store=cast("Store", away), kinds=jobs.app.kinds, settings=settings, emitter=told.emitter, clock=SystemClock()
    )
    try:
        await store.insert(jobs.ready)
        running = asyncio.create_task(worker.run())
        await until(lambda: len(jobs.under_way) == 4)
        away.broken = frozenset({"pass_gates"})
        await store.insert([jobs.gated])
        worker.wake()
        await until(lambda: "gates" in told.waits())
        away.is_away = True
        jobs.go.set()
        worker.wake()
        await timer.move(60)
        waits = told.waits()
        loops = {"promoter", "rescuer", "scheduler", "pauser", "canceller", "gate sweeper"}
        tasks = {"claim", "listen", "acknowledge", "checkpoint", "gates", "spend", "load steps"}
        assert tasks | loops <= waits.keys()
        wrong = {what: found for what, found in waits.items() if found[:7] != TEST_WAITS[: len(found[:7])]}
        assert wrong == {}
        away.is_away = False
        worker.stop()
        await timer.move(10)
        await asyncio.wait_for(running, 30)
    finally:
        await store.close()


async def test_c4_an_outage_counts_and_is_reported_and_a_success_resets_it(timer: ManualTimer) -> None:
    told, failures = Told(), 9

    async def ask() -> str:
        nonlocal failures
        if failures:
            failures -= 1
            raise StoreUnavailable("gone")
        return "here"

    outage = Outage("claim", told.emitter, TEST_LIMITS)
    for expected in ([*TEST_WAITS, 5, 5], [0.2]):
        told.events.clear()
        asking = asyncio.create_task(outage.outlast(ask))
        await timer.move(sum(expected) - 0.1)
        assert not asking.done()
        await timer.move(0.1)
        assert await asking == "here"
        assert told.waits() == {"claim": expected}
        assert told.events[-1] == StoreRecovered("claim", len(expected))
        assert outage.failures == 0
        failures = 1


async def test_c4_a_quarantine_gives_back_with_the_limits_of_the_worker(timer: ManualTimer) -> None:
    class Gone:
        async def acknowledge(self, _: object) -> None:
            raise StoreUnavailable("gone")

    told = Told()
    quarantine = Quarantine(
        cast("Store", Gone()),
        told.emitter,
        WorkerSettings(outage_errors=TEST_LIMITS.errors, outage_backoff=TEST_LIMITS.backoff),
        start=lambda _: None,
        is_running=lambda _: True,
        on_given_back=lambda: None,
    )
    suspects = [a_claim("killer", crashes=2, crash_limit=3) for _ in range(2)]
    quarantine.start(suspects)
    await timer.move(sum(TEST_WAITS))
    await quarantine.close()
    assert told.waits()["quarantine"][:7] == TEST_WAITS


def test_c10_the_defaults_of_an_outage_are_five_errors_and_thirty_seconds() -> None:
    assert WorkerSettings().outage == OutageLimits(5, timedelta(seconds=30))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"outage_errors": 0}, "worker.outage_errors must be at least 1, got 0"),
        ({"outage_errors": "3"}, "worker.outage_errors must be a whole number, got '3'"),
        ({"outage_backoff": 0}, "worker.outage_backoff must be longer than 0"),
        ({"outage_backoff": "soon"}, "worker.outage_backoff .*soon"),
    ],
)
def test_c10_limits_of_an_outage_that_cannot_be_meant_are_refused_by_name(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        WorkerSettings(**settings)
