"""Opening: the ramp of orphans in exact times (C2), polling (C3), and a database that fails (C4). No test sleeps."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, cast

import pytest
from structlog.typing import EventDict
from systems.tests.pulse.support import SQLITE, at_work, found
from tests.support.builders.jobs import employ
from tests.support.timer import ManualTimer
from tests.support.waiting import until

from perdure import JobFilter, JobView, Page
from perdure.app.connect import store_for
from perdure.clock import ManualClock, SystemClock
from perdure.errors import StoreUnavailable
from perdure.events import Emitter, Event, StoreRecovered, StoreTrouble
from perdure.lifecycle.outage import Outage
from perdure.storage.port import Store
from perdure.storage.records import Wanted
from perdure.testing import Sandbox
from perdure.worker.claiming.slow_start import Pace, SlowStart
from perdure.worker.wiring.worker import build_worker
from perdure_systems.pulse.jobs import app, index
from perdure_systems.pulse.settings import FOR_TESTS, worker_settings

MOST = 1_000


async def orphans(jobs: int, with_checkpoint: int) -> list[str]:
    """So many jobs that a dead worker held, the last ones with a checkpoint; their ids in the order of their claims."""
    await app.enqueue_many([index.call(f"DOC_{number}", f"{number}.txt") for number in range(jobs)])
    store = await app.store()
    worker_id = await employ(store, queues=("pulse",))
    claims = await store.claim(worker_id, [Wanted("pulse", jobs)])
    assert len(claims) == jobs
    for claim in claims[-with_checkpoint:]:
        assert await store.checkpoint(claim, "1")
    await store.retire(worker_id)
    return [claim.job_id for claim in claims]


async def returning(jobs: int) -> list[JobView]:
    """The jobs that return step by step, once there are so many."""
    desk, views, before = await app.desk("test"), list[JobView](), None
    while True:
        page = await desk.jobs(JobFilter(queue="pulse", states="retrying"), Page(limit=500, before=before))
        views += page.jobs
        before = page.next
        if before is None:
            return views if len(views) == jobs else []


@pytest.mark.parametrize(
    ("engine_url", "environment", "nine_within", "rest_within"),
    [("sqlite", {}, 60, 900), ("postgres", {}, 60, 900), ("sqlite", FOR_TESTS, 2, 30)],
    indirect=["engine_url"],
    ids=["sqlite-5 min", "postgres-5 min", "sqlite-10 s"],
)
async def test_c2_1005_orphans_return_at_their_exact_times_and_at_most_1000_in_one_opening(
    box: Sandbox, logged: list[EventDict], environment: dict[str, str], nine_within: int, rest_within: int
) -> None:
    """The first at once, nine spread over phase/5, the rest evenly over phase × 3; those with a checkpoint first."""
    ids = await orphans(MOST + 5, with_checkpoint=7)
    began = box.now
    async with at_work(**({"PULSE_START_PHASE": "5m"} | environment)) as worker:
        worker.quiet("the test only looks")
        views = await found(lambda: returning(MOST - 1))
    due = {view.id: (view.due_at - began).total_seconds() for view in views if view.due_at}
    expected = [nine_within * place / 9 for place in range(1, 10)]
    expected += [nine_within + rest_within * place / (MOST - 10) for place in range(1, MOST - 9)]
    assert sorted(due.values()) == pytest.approx(expected, abs=2e-6)
    first_seven = sorted(due, key=lambda job_id: due[job_id])[:6]
    assert set(first_seven) < set(ids[-7:]), "the seventh came back at once"
    desk = await app.desk("test")
    at_once = (await desk.jobs(JobFilter(queue="pulse", states=("ready", "succeeded", "cancelled", "dead")))).jobs
    assert [view.id in ids[-7:] for view in at_once] == [True]
    left = await desk.count(JobFilter(queue="pulse", states="running"))
    assert left.jobs == 5, "the rest waits for the next round"
    lines = [entry["event"] for entry in logged if entry["event"].startswith("✿ Opening: ")]
    assert (
        f"✿ Opening: 1000 orphaned jobs return over {nine_within + rest_within} s, 7 with a checkpoint come first"
        in lines
    )
    assert f"✿ Opening: more orphaned jobs wait for the next round in {nine_within + rest_within} s" in lines
    box.travel(nine_within + rest_within)
    async with at_work() as worker:
        worker.quiet("the test only looks")
        assert await found(_nobody_left), "the next round brings the others"


async def _nobody_left() -> bool:
    return (await (await app.desk("test")).count(JobFilter(queue="pulse", states="running"))).jobs == 0


def test_c3_polling_is_quick_until_20_jobs_and_2_minutes_are_over() -> None:
    clock, done = ManualClock(SystemClock().now()), 0
    settings = worker_settings({"PULSE_POLL_INTERVAL": "7s"})
    opened = SlowStart(settings, clock)
    pace = Pace(settings, opened, lambda: done)
    opened.begin()
    assert pace() == 1
    done = 20
    clock.move(timedelta(minutes=2) - timedelta(seconds=1))
    assert pace() == 1, "under 2 minutes"
    clock.move(timedelta(seconds=1))
    assert pace() == 7
    done = 19
    assert pace() == 1, "fewer than 20 jobs"


@pytest.mark.parametrize(("polling", "expected"), [("fixed", 7.0), ("none", None)])
def test_c3_a_fixed_pace_never_changes_and_none_never_looks(polling: str, expected: float | None) -> None:
    settings = worker_settings({"PULSE_POLL_INTERVAL": "7s", "PULSE_POLLING": polling})
    assert Pace(settings, SlowStart(settings, ManualClock(SystemClock().now())), lambda: 0)() == expected


class Away:
    """A store that cannot be asked for jobs while it is away."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.is_away = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def claim(self, *args: Any, **options: Any) -> Any:
        if self.is_away:
            raise StoreUnavailable("the server is gone")
        return await self._store.claim(*args, **options)


@SQLITE
@pytest.mark.parametrize(
    ("environment", "waits"),
    [({}, [0.2] * 4 + [1, 2, 4, 8, 16, 30, 30]), (FOR_TESTS, [0.2] * 2 + [1, 2, 4, 5, 5])],
    ids=["5 errors to 30 s", "3 errors to 5 s"],
)
async def test_c4_a_worker_backs_off_after_consecutive_errors_and_a_success_resets_it(
    engine_url: str, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], waits: list[float]
) -> None:
    timer = ManualTimer()
    monkeypatch.setattr(Outage, "timer", timer)
    emitter, events = Emitter(), list[Event]()
    emitter.subscribe(events.append)
    store = store_for(engine_url)
    await store.open()
    away = Away(store)
    settings = worker_settings({**environment, "PULSE_STOP_TIMEOUT": "100ms"})
    worker = build_worker(
        store=cast("Store", away), kinds=app.kinds, settings=settings, emitter=emitter, clock=SystemClock()
    )
    running = asyncio.create_task(worker.run())
    try:
        await worker.started()
        for _ in range(2):  # the second outage begins anew: the success between them has reset it
            away.is_away = True
            events.clear()
            worker.wake()
            for number, wait in enumerate(waits, 1):
                await until(lambda so_many=number: len(_claim_waits(events)) >= so_many)  # type: ignore[misc]
                await timer.move(wait)
            assert _claim_waits(events)[: len(waits)] == waits
            away.is_away = False
            await timer.move(waits[-1])
            await until(lambda: any(isinstance(event, StoreRecovered) for event in events))
    finally:
        worker.stop()
        await timer.move(60)
        await asyncio.wait_for(running, 30)
        await store.close()


def _claim_waits(events: list[Event]) -> list[float]:
    return [event.wait for event in events if isinstance(event, StoreTrouble) and event.what == "claim"]
