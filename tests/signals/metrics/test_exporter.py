"""What a process and the cluster export: each count once, and the same as the desk shows."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from tests.signals.metrics.exposed import Exposed
from tests.support.waiting import PATIENCE
from tests.support.working import found

from perdure import App, Breaker, Budget, Context, Permanent, Snooze, StoreUnavailable, WorkerSettings
from perdure.clock import ManualClock, SystemClock
from perdure.events import Emitter, JobsRescued, ScheduleMissed, StaleWrites
from perdure.metrics import MetricsSettings, exporter
from perdure.signals.metrics.catalogue import METRICS
from perdure.signals.metrics.exporter import ClusterMetrics, Exporter
from perdure.signals.metrics.labels import Labels
from perdure.signals.metrics.making import make_exporter
from perdure.storage.operate.alerts import BudgetLimits
from perdure.storage.port import Store
from perdure.worker.worker import Worker


def busy_app(url: str) -> App:
    """An app whose jobs end in every way."""
    app = App(url, worker=WorkerSettings(poll="50ms", statistics="100ms", stop_timeout="0s"))

    @app.job
    async def good(n: int) -> int:
        return n

    @app.job(queue="mail")
    async def bad(n: int) -> None:
        raise Permanent(str(n))

    @app.job(breaker=Breaker("outside", failures=9, open_for="1m"), gates=[Budget("coins", daily=10, estimate=1)])
    async def shy(ctx: Context) -> None:
        await ctx.spend(2)
        raise Snooze("1h")

    @app.job
    async def parent(ctx: Context) -> int:
        return sum(await ctx.gather(good.call(n) for n in range(3)))

    @app.cron("* * * * * *")
    async def each_second() -> None: ...

    return app


async def exposed(source: Exporter, accept: str | None = None) -> Exposed:
    answer = await source.exposition(accept)
    return Exposed(answer.body.decode(), openmetrics=answer.content_type.startswith("application/openmetrics"))


async def worked(app: App, metrics: Exporter, workers: list[Worker]) -> Exposed:
    """Let a worker do some of everything; returns what is exposed when all is written."""
    worker = await app.worker()
    workers.append(worker)
    running = asyncio.create_task(worker.run())
    await app.enqueue_many([app.job_named("good").call(n=n) for n in range(20)])
    for name, arguments in (("bad", {"n": 1}), ("bad", {"n": 2}), ("shy", {}), ("parent", {})):
        await app.job_named(name).enqueue(**arguments)

    async def look() -> Exposed | None:
        seen = await exposed(metrics)
        good, fired = seen.total("perdure_run_seconds_count", kind="good"), seen.total("perdure_schedule_times_total")
        parents = seen.total("perdure_attempts_total", kind="parent", outcome="succeeded")
        held = seen.total("perdure_holds_total", reason="snoozed")
        return seen if good >= 23 and fired >= 1 and parents and held else None

    await found(look)
    worker.stop()
    await asyncio.wait_for(running, PATIENCE)
    return await exposed(metrics)


async def test_a10_process_and_cluster_export_what_became_of_every_attempt(engine_url: str) -> None:
    """The sums of the workers are the sums of the cluster, and counters survive a new process."""
    app, workers = busy_app(engine_url), list[Worker]()
    async with app:
        metrics = exporter(app, workers=workers, cluster=True, settings=MetricsSettings(fresh=0))
        before = await exposed(metrics)
        assert before.value("perdure_cluster_deaths_total", queue="mail", kind="bad") == 0  # so that 1 is an increase
        assert before.value("perdure_enqueued_total", queue="mail", kind="bad") == 0
        seen = await worked(app, metrics, workers)
        pair = {"queue": "default", "kind": "good"}
        assert seen.value("perdure_attempts_total", **pair, outcome="succeeded") == 23
        assert seen.value("perdure_enqueued_total", **pair) == 23  # the 3 that a handler spawned are among them
        assert seen.value("perdure_enqueued_total", queue="mail", kind="bad") == 2
        fired = seen.total("perdure_schedule_times_total", schedule="each_second", outcome="fired")
        assert seen.total("perdure_enqueued_total", kind="each_second") == fired
        assert seen.total("perdure_schedule_lateness_seconds_count") == fired
        assert seen.value("perdure_deaths_total", queue="mail", kind="bad") == 2
        assert seen.value("perdure_holds_total", queue="default", kind="shy", reason="snoozed") == 1
        assert seen.total("perdure_wait_seconds_count", kind="good") == 23
        assert seen.value("perdure_wait_seconds_bucket", **pair, le="+Inf") == 23
        assert seen.total("perdure_loop_ticks_total", loop="promoter") > 0

        for name in ("attempts_total", "deaths_total", "retries_total", "wait_seconds_count", "run_seconds_bucket"):
            assert seen.total(f"perdure_cluster_{name}") == seen.total(f"perdure_{name}"), name
        assert seen.value("perdure_cluster_dead_letters", kind="bad") == 2
        assert seen.value("perdure_cluster_jobs", queue="mail", state="dead") == 2
        assert seen.value("perdure_cluster_jobs", queue="default", state="waiting") == 1
        assert seen.value("perdure_cluster_breaker_state", breaker="outside", state="closed") == 1
        assert seen.value("perdure_cluster_budget_share", budget="coins", window="daily") == 0.2
        assert seen.value("perdure_cluster_schedule_overdue_seconds", schedule="each_second") is not None
        exported = {family.name for family in seen.families} | {f"{family.name}_total" for family in seen.families}
        assert [metric.name for metric in METRICS if metric.name not in exported] == []

        async with App(engine_url) as other:  # as in another process, which has counted nothing
            again = await exposed(exporter(other, cluster=True))
        assert again.value("perdure_cluster_deaths_total", queue="mail", kind="bad") == 2
        assert again.total("perdure_attempts_total") == 0
        desk = await app.desk("test")
        await desk.requeue(await desk.filter("state:dead"), why="again")
        await desk.cancel(await desk.filter("kind:bad state:ready"))
        later = await exposed(exporter(app, cluster=True))
        assert later.value("perdure_cluster_dead_letters", kind="bad") == 0
        assert later.value("perdure_cluster_deaths_total", queue="mail", kind="bad") == 2


async def test_openmetrics_is_written_for_those_who_ask_for_it(engine_url: str) -> None:
    async with App(engine_url) as app:
        metrics = exporter(app, cluster=True)
        accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
        answer = await metrics.exposition(accept)
        assert answer.content_type.startswith("application/openmetrics-text; version=1.0.0")
        assert answer.body.endswith(b"# EOF\n")
        seen = await exposed(metrics, accept)
        assert seen.value("perdure_cluster_up") == 1
        units = {family.name: family.unit for family in seen.families if family.unit}
        assert units["perdure_cluster_read_seconds"] == units["perdure_wait_seconds"] == "seconds"
        for odd in (
            "",
            "*/*",
            "application/openmetrics-text; version=x",
            "application/openmetrics-text; version=;;,",
            "é",
        ):
            assert (await metrics.exposition(odd)).body


async def test_events_of_rescue_schedules_and_stale_writes_are_counted() -> None:
    events = Emitter()
    metrics = make_exporter(events, MetricsSettings())
    assert (await exposed(metrics)).value("perdure_rescued_jobs_total", outcome="dead") == 0  # so that 1 is an increase
    events.emit(JobsRescued(3, 1))
    events.emit(JobsRescued(2, 0))
    events.emit(ScheduleMissed("nightly", 4, "a", "b"))
    events.emit(StaleWrites(("1", "2")))
    seen = await exposed(metrics)
    assert seen.value("perdure_rescued_jobs_total", outcome="ready") == 5
    assert seen.value("perdure_rescued_jobs_total", outcome="dead") == 1
    assert seen.value("perdure_schedule_times_total", schedule="nightly", outcome="missed") == 4
    assert seen.value("perdure_schedule_times_total", schedule="nightly", outcome="fired") == 0
    found_at = seen.value("perdure_schedule_last_missed_timestamp_seconds", schedule="nightly")
    assert abs(SystemClock().now().timestamp() - (found_at or 0)) < PATIENCE
    assert seen.value("perdure_events_total", event="StaleWrites") == 1
    metrics.close()
    events.emit(JobsRescued(1, 0))
    assert (await exposed(metrics)).value("perdure_rescued_jobs_total", outcome="ready") == 5


async def test_a_database_that_is_away_is_a_number_and_not_an_error() -> None:
    async def away() -> Store:
        raise StoreUnavailable("gone")

    seen = await exposed(make_exporter(Emitter(), MetricsSettings(), cluster=away))
    assert seen.value("perdure_cluster_up") == 0
    assert seen.total("perdure_build_info") == 1


async def test_a_database_that_never_answers_does_not_hold_up_what_the_process_counts(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perdure.signals.metrics.exporter._READ_TIMEOUT_SECONDS", 0.01)

    async def silent() -> Store:
        await asyncio.Event().wait()
        return store

    seen = await exposed(make_exporter(Emitter(), MetricsSettings(), cluster=silent))
    assert seen.value("perdure_cluster_up") == 0
    assert seen.total("perdure_build_info") == 1


async def test_a_desk_without_the_code_knows_the_limits_that_workers_declare(store: Store) -> None:
    limits = ((timedelta(days=1), 10.0), (timedelta(days=30), 200.0))
    await store.declare_alerts((), (), [BudgetLimits("coins", limits)])

    async def source() -> Store:
        return store

    seen = await exposed(make_exporter(Emitter(), MetricsSettings(), cluster=source))
    assert seen.value("perdure_cluster_budget_share", budget="coins", window="daily") == 0
    assert seen.value("perdure_cluster_budget_share", budget="coins", window="monthly") == 0
    assert seen.value("perdure_cluster_budget_share", budget="coins", window="weekly") is None


async def test_many_scrapes_at_once_ask_the_database_once(store: Store) -> None:
    asked = 0

    async def counted() -> Store:
        nonlocal asked
        asked += 1
        return store

    metrics = make_exporter(Emitter(), MetricsSettings(fresh="1m"), cluster=counted)
    await asyncio.gather(*(metrics.exposition() for _ in range(10)))
    assert asked == 1


@pytest.mark.parametrize(("took", "reused"), [(0.01, 1.0), (0.25, 5.0), (4.0, 10.0)])
async def test_a_read_that_takes_long_is_used_again_for_longer_by_all_scrapers(
    store: Store, took: float, reused: float
) -> None:
    """As with 10,000 kinds: reads take at most a twentieth of the time, however many scrapers there are."""
    asked, clock = 0, ManualClock()

    async def slow() -> Store:
        nonlocal asked
        asked += 1
        clock.move(timedelta(seconds=took))
        return store

    settings = MetricsSettings()
    metrics = Exporter(None, ClusterMetrics(slow, Labels(settings), settings, clock=clock))
    await asyncio.gather(*(metrics.families() for _ in range(5)))
    clock.move(timedelta(seconds=reused - 0.001))
    await metrics.families()
    assert asked == 1
    clock.move(timedelta(seconds=0.002))
    await asyncio.gather(*(metrics.families() for _ in range(5)))
    assert asked == 2


async def test_scrapes_that_waited_for_a_slow_database_do_not_ask_it_again_one_by_one(store: Store) -> None:
    asked, clock = 0, ManualClock()

    async def slow() -> Store:
        nonlocal asked
        asked += 1
        clock.move(timedelta(seconds=6))  # longer than an answer is fresh
        await asyncio.sleep(0)
        return store

    settings = MetricsSettings()
    metrics = Exporter(None, ClusterMetrics(slow, Labels(settings), settings, clock=clock))
    await asyncio.gather(*(metrics.exposition() for _ in range(5)))
    assert asked == 1


async def test_a_worker_without_heartbeat_is_silent(engine_url: str) -> None:
    """Its last record says that it is open, and there is no other worker that would bury it."""
    app = App(engine_url, worker=WorkerSettings(poll="50ms", stop_timeout="0s"))

    @app.job
    async def idle() -> None: ...

    async with app:
        worker = await app.worker()
        running = asyncio.create_task(worker.run())
        await worker.started()
        seen = await exposed(exporter(app, cluster=True))
        assert seen.total("perdure_cluster_workers") == 1
        assert seen.value("perdure_cluster_workers", phase="silent") == 0
        assert seen.value("perdure_cluster_queue_workers", queue="default") == 1
        silent = await exposed(exporter(app, cluster=True, settings=MetricsSettings(silence=timedelta(microseconds=1))))
        assert silent.value("perdure_cluster_workers", phase="silent") == 1
        assert silent.value("perdure_cluster_queue_workers", queue="default") == 0
        worker.stop()
        await asyncio.wait_for(running, PATIENCE)


@pytest.mark.parametrize("limits", [{"kinds": 0}, {"queues": True}, {"cap": "many"}, {"names": 10**9}])
def test_limits_that_cannot_hold_are_refused_by_name(limits: dict[str, object]) -> None:
    [name] = limits
    with pytest.raises(Exception, match=rf"metrics\.{name}"):
        MetricsSettings(**limits)  # type: ignore[arg-type]
