"""A sampler or a span processor of the program that fails costs no job."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import Sampler
from tests.signals.otel.conftest import AtWork

from perdure import App, Context, SyncContext
from perdure.otel import instrument


class Broken(SpanProcessor, Sampler):
    """A part of a program's tracing that fails in one place."""

    def __init__(self, place: str) -> None:
        self._place = place

    def _fail(self, place: str) -> None:
        if place == self._place:
            raise RuntimeError(f"{place} failed")

    def on_start(self, *_: Any, **__: Any) -> None:
        self._fail("start")

    def on_end(self, *_: Any) -> None:
        self._fail("end")

    def should_sample(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("sampling failed")

    def get_description(self) -> str:
        return "Broken"


@pytest.mark.parametrize("place", ["start", "end", "sampling"])
async def test_a_job_does_not_fail_with_the_programs_tracing(
    bare_app: App, at_work: AtWork, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    broken = Broken(place)
    provider = TracerProvider(sampler=broken) if place == "sampling" else TracerProvider()
    provider.add_span_processor(broken)
    instrument(bare_app, tracer_provider=provider)

    @bare_app.job
    async def stepping(ctx: Context) -> int:
        return await ctx.step("one", lambda: 1)

    @bare_app.job
    def blocking(ctx: SyncContext) -> int:
        ctx.sleep("1ms")
        return 2

    async with at_work():
        assert await (await stepping.enqueue()).result("30s") == 1
        assert await (await blocking.enqueue()).result("30s") == 2
    assert [record.name for record in caplog.records].count("perdure.otel") == 1
