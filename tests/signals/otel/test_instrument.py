"""`perdure.otel`: switched on, switched off, refused; ids in the log; metrics."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest
import structlog
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.trace import NoOpTracerProvider, format_span_id, format_trace_id
from tests.signals.otel.conftest import AtWork, Traces

from perdure import App, AttemptLog, ConflictError, Context, JobNotSuccessful, SettingsError, SyncContext
from perdure.events import JobsRescued, ScheduleFired, ScheduleMissed
from perdure.otel import add_trace_ids, instrument

_WITHOUT_OTEL = """
import sys
sys.modules["opentelemetry"] = None
import perdure
from perdure.otel import instrument
try:
    instrument(perdure.App("sqlite:///x.db"))
except perdure.SettingsError as error:
    print(error)
"""


async def test_an_app_is_traced_once_and_until_it_is_stopped(bare_app: App, traces: Traces, at_work: AtWork) -> None:
    @bare_app.job
    async def work() -> None: ...

    stop = instrument(bare_app, tracer_provider=traces.provider)
    with pytest.raises(ConflictError, match="traced already"):
        instrument(bare_app)
    async with at_work():
        await (await work.enqueue()).result("30s")
        await traces.one("attempt work")
        stop()
        stop()
        handle = await work.enqueue()
        await handle.result("30s")
    assert len(traces.spans) == 2
    assert (await handle.view()).meta is None
    with pytest.raises(SettingsError, match="app must be an App"):
        instrument("jobs")  # type: ignore[arg-type]


async def test_without_a_provider_or_with_one_that_does_nothing_jobs_run_as_ever(
    bare_app: App, at_work: AtWork
) -> None:
    @bare_app.job
    async def work(ctx: Context) -> int:
        return await ctx.step("one", lambda: 1)

    for provider in (None, NoOpTracerProvider()):
        stop = instrument(bare_app, tracer_provider=provider)
        async with at_work():
            handle = await work.enqueue()
            assert await handle.result("30s") == 1
        assert (await handle.view()).meta is None
        stop()


def test_a_missing_extra_is_named_and_import_perdure_does_not_need_it() -> None:
    told = subprocess.run([sys.executable, "-c", _WITHOUT_OTEL], capture_output=True, text=True, check=True)
    assert "pip install 'perdure[otel]'" in told.stdout
    loaded = "import perdure, sys; print(any(name.startswith('opentelemetry') for name in sys.modules))"
    assert (
        subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True).stdout == "False\n"
    )


async def test_log_lines_carry_the_ids_of_the_attempt(app: App, traces: Traces, at_work: AtWork) -> None:
    lines: list[dict[str, Any]] = []

    def keep(_logger: Any, _method: str, event: Any) -> Any:
        lines.append(dict(event))
        raise structlog.DropEvent

    @app.job
    async def soon(ctx: Context) -> None:
        ctx.log.info("from soon")
        raise ValueError("no")

    @app.job
    def blocking(ctx: SyncContext) -> None:
        ctx.log.info("from blocking")

    structlog.configure(processors=[keep])
    stop = app.log_events(AttemptLog())
    try:
        async with at_work():
            with pytest.raises(JobNotSuccessful):
                await (await soon.enqueue()).result("30s")
            await (await blocking.enqueue()).result("30s")
            await traces.one("attempt blocking")
    finally:
        stop()
        structlog.reset_defaults()
    ids = {
        (format_trace_id(span.context.trace_id), format_span_id(span.context.span_id)): span.name
        for span in traces.spans
        if span.context is not None
    }
    told = {line["event"]: ids[line["trace_id"], line["span_id"]] for line in lines if "trace_id" in line}
    assert told == {
        "job started": "attempt blocking",
        "from soon": "attempt soon",
        "attempt failed, will retry": "attempt soon",
        "job is dead": "attempt soon",
        "from blocking": "attempt blocking",
        "job succeeded": "attempt blocking",
    }
    assert all("trace_id" not in line for line in lines if line["event"].startswith("worker"))
    with traces.provider.get_tracer("a program").start_as_current_span("own") as span:
        assert add_trace_ids(None, "info", {})["trace_id"] == format_trace_id(span.get_span_context().trace_id)
    assert add_trace_ids(None, "info", {}) == {}


async def test_metrics_are_what_workers_have_counted(bare_app: App, traces: Traces, at_work: AtWork) -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    stop = instrument(bare_app, tracer_provider=traces.provider, meter_provider=provider)

    @bare_app.job
    async def leaf() -> None: ...

    @bare_app.job
    async def work(ctx: Context, ok: bool) -> None:
        if not ok:
            raise ValueError("no")
        await ctx.spawn([leaf.call()], on_end="keep")

    async with at_work() as worker:
        await (await work.enqueue(True)).result("30s")
        with pytest.raises(JobNotSuccessful):
            await (await work.enqueue(False)).result("30s")
        while worker.finished < 4:
            await asyncio.sleep(0.01)
        found = await asyncio.to_thread(_read, reader)
    assert found["perdure.enqueued"] == {("default", "work", None): 2, ("default", "leaf", None): 1}
    assert found["perdure.attempts"] == {
        ("default", "leaf", "succeeded"): 1,
        ("default", "work", "succeeded"): 1,
        ("default", "work", "retried"): 1,
        ("default", "work", "died"): 1,
    }
    assert found["perdure.run.time"]["default", "work", None] > 0
    assert set(found["perdure.slots"].values()) == {worker.tally().concurrency}
    stop()
    assert await asyncio.to_thread(_read, reader) == {}
    provider.shutdown()


async def test_metrics_report_rescues_schedules_and_loops(bare_app: App, traces: Traces, at_work: AtWork) -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    stop = instrument(bare_app, tracer_provider=traces.provider, meter_provider=provider)

    @bare_app.job
    async def leaf() -> None: ...

    async with at_work() as worker:
        await (await leaf.enqueue()).result("30s")
        bare_app.events.emit(JobsRescued(2, 1))
        bare_app.events.emit(ScheduleMissed("nightly", 4, "a", "b"))
        bare_app.events.emit(ScheduleFired("nightly", "b", "1", 0.5, "time", "default", "leaf"))
        found = await asyncio.to_thread(_points, reader)
    assert found["perdure.rescued"] == {("ready",): 2, ("dead",): 1}
    assert found["perdure.schedule.times"] == {("nightly", "missed"): 4, ("nightly", "fired"): 1}
    assert found["perdure.schedule.lateness"] == {("nightly",): 0.5}
    name = worker.tally().name
    assert found["perdure.loop.ticks"]["promoter", name] > 0
    assert found["perdure.loop.failures"]["promoter", name] == found["perdure.acknowledgements.stale"][name,] == 0
    stop()
    provider.shutdown()


def _points(reader: InMemoryMetricReader) -> dict[str, dict[tuple[Any, ...], float]]:
    """The value of each point, or the sum of a histogram, by the values of its attributes in the order of names."""
    data = reader.get_metrics_data()
    assert data is not None
    found: dict[str, dict[tuple[Any, ...], float]] = {}
    for metric in (metric for one in data.resource_metrics for scope in one.scope_metrics for metric in scope.metrics):
        for point in metric.data.data_points:
            labels = tuple(value for _, value in sorted((point.attributes or {}).items()))
            found.setdefault(metric.name, {})[labels] = getattr(point, "value" if hasattr(point, "value") else "sum")
    return found


def _read(reader: InMemoryMetricReader) -> dict[str, dict[Any, float]]:
    data = reader.get_metrics_data()
    found: dict[str, dict[Any, float]] = {}
    for resource in () if data is None else data.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                points: Any = metric.data.data_points
                found[metric.name] = {
                    tuple(
                        point.attributes.get(f"perdure.{name}") for name in ("job.queue", "job.kind", "attempt.outcome")
                    ): point.value
                    for point in points
                }
    return {name: points for name, points in found.items() if points}
