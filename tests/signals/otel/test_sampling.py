"""The provider's sampler decides: jobs are traced whole or not at all, and what is not sampled leaves no span."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.sampling import (
    ALWAYS_OFF,
    ALWAYS_ON,
    DEFAULT_OFF,
    DEFAULT_ON,
    Decision,
    ParentBased,
    Sampler,
    SamplingResult,
    TraceIdRatioBased,
)
from tests.signals.otel.conftest import AtWork, Traces

from perdure import App, Context, SyncContext
from perdure.otel import instrument
from perdure.signals.otel.samplers import Answers, answers_of


class Alternately(Sampler):
    """Samples every second root."""

    def __init__(self) -> None:
        self._number = 0

    def should_sample(self, *_: Any, **__: Any) -> SamplingResult:
        self._number += 1
        return SamplingResult(Decision.RECORD_AND_SAMPLE if self._number % 2 else Decision.DROP)

    def get_description(self) -> str:
        return "Alternately"


@pytest.fixture
def sampled() -> Iterator[Traces]:
    """Traces of every second root."""
    made = Traces()
    made.provider = TracerProvider(sampler=ParentBased(Alternately()), shutdown_on_exit=False)
    made.provider.add_span_processor(SimpleSpanProcessor(made.memory))
    yield made
    made.provider.shutdown()


async def test_attempts_and_all_inside_follow_the_enqueue(bare_app: App, sampled: Traces, at_work: AtWork) -> None:
    instrument(bare_app, tracer_provider=sampled.provider)
    tracer, seen = sampled.provider.get_tracer("a program"), []

    @bare_app.job
    async def leaf() -> None: ...

    @bare_app.job
    async def soon(ctx: Context, n: int) -> None:
        seen.append(trace.get_current_span().get_span_context())
        with tracer.start_as_current_span("inside"):
            await ctx.step("fetch", lambda: n)
        await ctx.spawn([leaf.call()], on_end="keep")

    @bare_app.job
    def blocking(ctx: SyncContext, n: int) -> None:
        with tracer.start_as_current_span("inside"):
            ctx.step("fetch", lambda: n)
        ctx.spawn([leaf.call()], on_end="keep")

    async with at_work() as worker:
        for job in (soon, blocking):
            for n in range(4):
                await (await job.enqueue(n)).result("30s")
        while worker.finished < 16:
            await (await leaf.using(meta={"traceparent": "00-" + "1" * 32 + "-" + "1" * 16 + "-00"}).enqueue()).result()
    counted = {name: len(sampled.named(name)) for name in ("attempt soon", "attempt blocking", "inside", "step fetch")}
    assert counted == {"attempt soon": 2, "attempt blocking": 2, "inside": 4, "step fetch": 4}
    assert len(sampled.named("attempt leaf")) == len(sampled.named("enqueue leaf")) == 4
    assert [context.trace_flags.sampled for context in seen] == [True, False, True, False]
    assert all(context.is_valid for context in seen)
    assert len({context.trace_id for context in seen}) == 4


@pytest.mark.parametrize(
    ("sampler", "answers"),
    [
        (ALWAYS_ON, Answers(True, True, 2**64)),
        (ALWAYS_OFF, Answers(False, False, 0)),
        (DEFAULT_ON, Answers(True, False, 2**64)),
        (DEFAULT_OFF, Answers(True, False, 0)),
        (TraceIdRatioBased(0.25), Answers(None, None, 2**62)),
        (ParentBased(TraceIdRatioBased(0.25)), Answers(True, False, 2**62)),
        (ParentBased(ALWAYS_ON, remote_parent_not_sampled=ALWAYS_ON), Answers()),
        (ParentBased(Alternately()), Answers(True, False, None)),
        (Alternately(), Answers()),
    ],
)
def test_what_a_sampler_would_say_is_known_from_its_description(sampler: Sampler, answers: Answers) -> None:
    assert answers_of(sampler) == answers
    bound = answers.bound
    if bound is not None and answers.if_sampled is not None:
        for low in (0, 2**62 - 1, 2**62, 2**64 - 1):
            said = sampler.should_sample(None, (1 << 100) | low, "attempt")
            assert (said.decision is Decision.RECORD_AND_SAMPLE) is (low < bound)
