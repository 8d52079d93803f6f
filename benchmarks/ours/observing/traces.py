"""What traces cost: the same jobs drained without a tracer, sampled at 1 %, and all of them traced.

`python -m benchmarks.ours.observing.traces [--engine sqlite|postgres] [--rounds N]` prints the figures of each engine.

The jobs do nothing, so that the figures are the most that tracing can cost. Spans go through the SDK's
BatchSpanProcessor to an exporter that counts them and drops them: what an exporter does with a span is its own cost,
and is shown apart, for OTLP. The drains take turns on one database, each round in another order, and the medians count.
A ratio compares two drains of the same round. Processor time is used, because other programs on the machine change it
less than the jobs per second. That of the drain is the time of this process and, on PostgreSQL, of the server; the
ratio of this process alone stands beside it. Each ratio stands beside what it must reach. Both engines take about a
minute and a half on two free cores.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Decision, ParentBased, Sampler, SamplingResult

from benchmarks.harness.contestant import Engine
from benchmarks.harness.databases import new_database
from benchmarks.harness.postgres import postgres_server
from benchmarks.harness.server_time import ServerTime
from benchmarks.ours.addresses import address
from perdure import App, Job, WorkerSettings
from perdure.otel import instrument

JOBS: Final = 40_000  # enough for full garbage collections in each drain
ROUNDS: Final = 7
PER_CALL: Final = 20
PLAIN, SAMPLED, FULL = "untraced", "1 % sampled", "all traced"
MOST_COST: Final = {PLAIN: 1.0, SAMPLED: 1.05, FULL: 1.25}
PARTS: Final = (PLAIN, SAMPLED, FULL)
_QUEUE: Final = 100_000  # spans that may wait for the exporter: none is to be dropped


class Drain(Struct, frozen=True):
    """How fast jobs were drained, what one has cost this process, and how many spans were exported."""

    per_second: float
    cpu_micros: float
    server_micros: float = 0.0
    spans: int = 0

    @property
    def total(self) -> float:
        """The time of this process and of the server."""
        return self.cpu_micros + self.server_micros


class Cost(Struct, frozen=True):
    """The medians of one part, and of its ratios to the untraced drain of the same round."""

    drain: Drain
    speed: float
    total: float
    own: float
    least: float


class OneInAHundred(Sampler):
    """Samples every hundredth root, so that each round traces as many jobs."""

    def __init__(self) -> None:
        self._numbers = itertools.count()

    def should_sample(self, *_: Any, **__: Any) -> SamplingResult:
        """Count."""
        return SamplingResult(Decision.DROP if next(self._numbers) % 100 else Decision.RECORD_AND_SAMPLE)

    def get_description(self) -> str:
        """Its name."""
        return "OneInAHundred"


class Counted(SpanExporter):
    """Counts spans and drops them."""

    def __init__(self) -> None:
        self.spans = 0
        self.last: Sequence[ReadableSpan] = ()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Count."""
        self.spans += len(spans)
        self.last = spans
        return SpanExportResult.SUCCESS


async def _noop() -> None: ...


@contextmanager
def _tracing(app: App, sampler: Sampler) -> Iterator[Counted]:
    exporter = Counted()
    provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=_QUEUE))
    stop = instrument(app, tracer_provider=provider)
    try:
        yield exporter
    finally:
        stop()
        provider.shutdown()


def trace_cost(engine: Engine, server: str, *, jobs: int = JOBS, rounds: int = ROUNDS) -> dict[str, Cost]:
    """What each part costs."""
    drains: dict[str, list[Drain]] = {name: [] for name in PARTS}
    with new_database(engine, server) as database:
        url = address(engine, database)
        clock = ServerTime(url).seconds if engine is Engine.POSTGRES else _no_server
        for name in PARTS:
            asyncio.run(_drained(url, name, jobs, clock))  # to warm up
        for number in range(rounds):
            begin = number % len(PARTS)
            for name in (*PARTS[begin:], *PARTS[:begin]):
                drains[name].append(asyncio.run(_drained(url, name, jobs, clock)))
    return {name: _cost(some, drains[PLAIN]) for name, some in drains.items()}


def _no_server() -> float:
    return 0.0


async def _drained(url: str, name: str, jobs: int, server: Callable[[], float]) -> Drain:
    async with App(url) as app:
        noop = app.job(name="noop")(_noop)
        if name == PLAIN:
            return await _drain(app, noop, jobs, server)
        with _tracing(app, ParentBased(OneInAHundred()) if name == SAMPLED else ALWAYS_ON) as exporter:
            drain = await _drain(app, noop, jobs, server)
        return replace(drain, spans=exporter.spans)


async def _drain(app: App, job: Job[[], None], jobs: int, server: Callable[[], float]) -> Drain:
    for _ in range(0, jobs, PER_CALL):
        await app.enqueue_many(job.call() for _ in range(PER_CALL))
    worker = await app.worker(WorkerSettings(concurrency=1_000))
    gc.collect()
    begun, used, served = time.perf_counter(), time.process_time(), server()
    running = asyncio.create_task(worker.run())
    while worker.acknowledged < jobs:  # noqa: ASYNC110 - what is measured must not be told to
        await asyncio.sleep(0.002)
    per_second, own = jobs / (time.perf_counter() - begun), time.process_time() - used
    drain = Drain(per_second, own * 1e6 / jobs, (server() - served) * 1e6 / jobs)
    worker.stop()
    await running
    return drain


def _cost(drains: list[Drain], plain: list[Drain]) -> Cost:
    median, pairs = statistics.median, list(zip(drains, plain, strict=True))
    return Cost(
        Drain(
            median(drain.per_second for drain in drains),
            median(drain.cpu_micros for drain in drains),
            median(drain.server_micros for drain in drains),
            round(median(drain.spans for drain in drains)),
        ),
        speed=median(drain.per_second / other.per_second for drain, other in pairs),
        total=median(drain.total / other.total for drain, other in pairs),
        own=median(drain.cpu_micros / other.cpu_micros for drain, other in pairs),
        least=min(drain.cpu_micros for drain in drains) / min(drain.cpu_micros for drain in plain),
    )


def encoding_cost(url: str) -> float:
    """The microseconds that OTLP takes to read and encode the span of one attempt."""

    async def made() -> Sequence[ReadableSpan]:
        async with App(url) as app:
            noop = app.job(name="noop")(_noop)
            with _tracing(app, ALWAYS_ON) as exporter:
                await _drain(app, noop, 2_000, _no_server)
            return exporter.last

    spans = asyncio.run(made())
    used = time.process_time()
    encode_spans(spans).SerializeToString()
    return (time.process_time() - used) * 1e6 / len(spans)


def main() -> None:
    """Print the figures of each engine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=["sqlite", "postgres"], action="append")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    chosen = given.engine or ["sqlite", "postgres"]
    if "sqlite" in chosen:
        with tempfile.TemporaryDirectory(prefix="traces-") as folder:
            _show(Engine.SQLITE, trace_cost(Engine.SQLITE, folder, rounds=given.rounds))
            print(f"OTLP: {encoding_cost(f'sqlite:///{folder}/otlp.db'):.1f} µs to encode a span", flush=True)
    if "postgres" in chosen:
        with postgres_server() as server:
            _show(Engine.POSTGRES, trace_cost(Engine.POSTGRES, server, rounds=given.rounds))


def _show(engine: Engine, figures: dict[str, Cost]) -> None:
    for name, cost in figures.items():
        bar = "" if name == PLAIN else f" (must be at most {MOST_COST[name]})"
        speed = f"{cost.drain.per_second:,.0f} jobs/s, wall-clock time x {1 / cost.speed:.3f}"
        total = f"{cost.drain.total:.2f} µs of processor time x {cost.total:.3f}{bar}"
        own = f"{cost.drain.cpu_micros:.2f} µs here x {cost.own:.3f}, of the least {cost.least:.3f}"
        print(f"{engine} {name}: {speed}; {total}; {own}; {cost.drain.spans:,} spans", flush=True)


if __name__ == "__main__":
    main()
