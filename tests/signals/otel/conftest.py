"""An app on each engine, traced into memory, and a worker of it for as long as a test needs one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.support.waiting import until

from perdure import App, Backoff, Jitter, Retry, WorkerSettings
from perdure.otel import instrument
from perdure.worker.worker import Worker

AtWork = Callable[[], AbstractAsyncContextManager[Worker]]
QUICK = Retry(attempts=2, backoff=Backoff.fixed("10ms"), jitter=Jitter.none())


class Traces:
    """The spans that were exported."""

    def __init__(self) -> None:
        self.memory = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.memory))

    @property
    def spans(self) -> list[ReadableSpan]:
        """All of them, in the order in which they ended."""
        return list(self.memory.get_finished_spans())

    def named(self, name: str) -> list[ReadableSpan]:
        """Those of this name."""
        return [span for span in self.spans if span.name == name]

    async def one(self, name: str) -> ReadableSpan:
        """The one of this name, once it has ended."""
        return (await self.some(name, 1))[0]

    async def some(self, name: str, count: int) -> list[ReadableSpan]:
        """So many of this name, once they have ended."""
        await until(lambda: len(self.named(name)) >= count)
        found = self.named(name)
        assert len(found) == count, [span.name for span in self.spans]
        return found


@pytest.fixture
def traces() -> Iterator[Traces]:
    """A provider of the SDK that samples everything, and what it exports."""
    made = Traces()
    yield made
    made.provider.shutdown()


@pytest.fixture
async def bare_app(engine_url: str) -> AsyncIterator[App]:
    """An app that is not traced."""
    async with App(engine_url, retry=QUICK) as app:
        yield app


@pytest.fixture
def app(bare_app: App, traces: Traces) -> App:
    """An app whose jobs are traced."""
    instrument(bare_app, tracer_provider=traces.provider)
    return bare_app


@pytest.fixture
def at_work(bare_app: App) -> AtWork:
    """Runs a worker of the app while a block lasts."""

    @asynccontextmanager
    async def working() -> AsyncIterator[Worker]:
        worker = await bare_app.worker(WorkerSettings(grace="200ms", poll="50ms", stop_timeout=0))
        running = asyncio.create_task(worker.run())
        try:
            yield worker
        finally:
            worker.stop()
            await asyncio.wait_for(running, 30)

    return working
