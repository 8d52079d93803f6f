"""Starts and ends the spans of attempts: with the SDK's parts if the tracer is the SDK's, else through the API alone.

By default an attempt is the root of a trace of its own, which links to the span that enqueued its job, and it is
sampled if that span was. With `links` False it is a child of that span.
"""

from __future__ import annotations

from random import getrandbits
from typing import Any, Final, Protocol

from opentelemetry.trace import Link, NonRecordingSpan, Span, SpanContext, SpanKind, Tracer

from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.transition import Transition
from perdure.signals.otel import carrier, descriptions, names
from perdure.signals.otel.carrier import EMPTY, within
from perdure.signals.otel.samplers import answers_of
from perdure.version import __version__

_LOW_BITS: Final = (1 << 64) - 1


class AttemptSpans(Protocol):
    """Makes the spans of attempts."""

    def start(self, claim: Claim) -> Span | None:
        """The span of an attempt that starts; None: it is not sampled."""

    def finish(self, span: Any, move: Transition | None) -> None:
        """End it."""


def attempt_spans(tracer: Tracer, *, links: bool, messaging: bool) -> AttemptSpans:
    """The implementation for this tracer."""
    try:
        from opentelemetry.sdk import trace as sdk  # noqa: PLC0415 - it need not be installed
    except ImportError:
        return ApiSpans(tracer, links=links, messaging=messaging)
    if isinstance(tracer, sdk.Tracer):
        return SdkSpans(tracer, links=links, messaging=messaging)
    return ApiSpans(tracer, links=links, messaging=messaging)


class ApiSpans:
    """Spans through the API alone: for providers other than the SDK's."""

    def __init__(self, tracer: Tracer, *, links: bool, messaging: bool) -> None:
        self._tracer = tracer
        self._links = links
        self._messaging = messaging

    def start(self, claim: Claim) -> Span | None:
        """The span of an attempt that starts; None: it is not sampled."""
        origin = carrier.read(claim.meta)
        span = self._tracer.start_span(
            f"{names.ATTEMPT} {claim.kind}",
            context=EMPTY if self._links or origin is None else within(NonRecordingSpan(origin)),
            kind=SpanKind.CONSUMER,
            attributes=descriptions.of_claim(claim, messaging=self._messaging),
            links=[Link(origin)] if self._links and origin is not None else [],
        )
        return span if span.is_recording() else None

    def finish(self, span: Span, move: Transition | None) -> None:
        """End it."""
        span.set_attributes(descriptions.of_end(move))
        if move is not None and move.failure is not None:
            span.add_event(names.EXCEPTION, descriptions.exception_of(move.failure))
            span.set_status(descriptions.status_of(move.failure))
        span.end()


class SdkSpans:
    """Spans for the processors of the SDK, by its sampler and its id generator."""

    def __init__(self, tracer: Any, *, links: bool, messaging: bool) -> None:
        from opentelemetry.sdk.trace import SpanLimits  # noqa: PLC0415 - as above
        from opentelemetry.sdk.trace.id_generator import RandomIdGenerator  # noqa: PLC0415
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope  # noqa: PLC0415

        from perdure.signals.otel.sdk_span import AttemptSpan, Home  # noqa: PLC0415

        self._make = AttemptSpan
        self.finish = AttemptSpan.finish
        """End the span of an attempt."""
        self._home = Home(
            processor=tracer.span_processor,
            resource=tracer.resource,
            scope=InstrumentationScope(names.SCOPE, __version__),
            limits=getattr(tracer, "_span_limits", None) or SpanLimits(),
            links=links,
            messaging=messaging,
        )
        self._on_start = tracer.span_processor.on_start
        self._sampler = tracer.sampler
        self._answers = answers_of(tracer.sampler)
        self._ids = None if type(tracer.id_generator) is RandomIdGenerator else tracer.id_generator

    def start(self, claim: Claim) -> Span | None:
        """The span of an attempt that starts; None: it is not sampled."""
        meta, answers = claim.meta, self._answers
        sampled = None if meta is None else carrier.is_sampled(meta)
        if sampled is None:
            trace_id = self._trace_id()
            if answers.bound is None:
                return self._asked(claim, trace_id)
            if trace_id & _LOW_BITS >= answers.bound:
                return None
            return self._started(claim, trace_id, None)
        answer = answers.if_sampled if sampled else answers.if_unsampled
        if answer is False:
            return None
        parent = None if self._home.links else carrier.read(meta)
        trace_id = self._trace_id() if parent is None else parent.trace_id
        return self._asked(claim, trace_id, parent) if answer is None else self._started(claim, trace_id, parent)

    def _started(self, claim: Claim, trace_id: int, parent: SpanContext | None) -> Span:
        span_id = getrandbits(64) or 1 if self._ids is None else self._ids.generate_span_id()
        span = self._make(self._home, claim, trace_id, span_id, parent)
        self._on_start(span, EMPTY if parent is None else within(NonRecordingSpan(parent)))
        return span

    def _asked(self, claim: Claim, trace_id: int, parent: SpanContext | None = None) -> Span | None:
        """A span if the sampler samples it. The sampler sees the span that enqueued the job."""
        origin = carrier.read(claim.meta)
        result = self._sampler.should_sample(
            EMPTY if origin is None else within(NonRecordingSpan(origin)),
            trace_id,
            f"{names.ATTEMPT} {claim.kind}",
            SpanKind.CONSUMER,
            descriptions.of_claim(claim, messaging=self._home.messaging),
            [] if origin is None else [Link(origin)],
        )
        return self._started(claim, trace_id, parent) if result.decision.is_sampled() else None

    def _trace_id(self) -> int:
        if self._ids is None:
            return getrandbits(128) or 1
        trace_id: int = self._ids.generate_trace_id()
        return trace_id
