"""Starts and ends the spans of attempts: with the SDK's parts if the tracer is the SDK's, else through the API alone.

By default an attempt is the root of a trace of its own, which links to the span that enqueued its job, and it is
sampled if that span was. With `links` False it is a child of that span.
"""

from __future__ import annotations

from random import getrandbits
from typing import Any, Final, Protocol

from opentelemetry.trace import Link, NonRecordingSpan, Span, SpanKind, Tracer

from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.transition import Transition
from perdure.signals.otel import carrier, descriptions, names
from perdure.signals.otel.carrier import EMPTY, within
from perdure.signals.otel.failures import Failures
from perdure.signals.otel.samplers import answers_of
from perdure.version import __version__

_LOW_BITS: Final = (1 << 64) - 1


class AttemptSpans(Protocol):
    """Makes the spans of attempts. Errors of the program's sampler, id generator and processors end here."""

    def start(self, claim: Claim) -> Span | None:
        """The span of an attempt that starts; None: it is not sampled."""

    def finish(self, span: Any, move: Transition | None) -> None:
        """End it."""


def attempt_spans(tracer: Tracer, failures: Failures, *, links: bool, messaging: bool) -> AttemptSpans:
    """The implementation for this tracer."""
    try:
        from opentelemetry.sdk import trace as sdk  # noqa: PLC0415 - it need not be installed
    except ImportError:
        return ApiSpans(tracer, failures, links=links, messaging=messaging)
    if isinstance(tracer, sdk.Tracer):
        return SdkSpans(tracer, failures, links=links, messaging=messaging)
    return ApiSpans(tracer, failures, links=links, messaging=messaging)


class ApiSpans:
    """Spans through the API alone: for providers other than the SDK's."""

    def __init__(self, tracer: Tracer, failures: Failures, *, links: bool, messaging: bool) -> None:
        self._tracer = tracer
        self._failures = failures
        self._links = links
        self._messaging = messaging

    def start(self, claim: Claim) -> Span | None:
        """The span of an attempt that starts; None: it is not sampled."""
        with self._failures:
            origin = carrier.read(claim.meta)
            span = self._tracer.start_span(
                f"{names.ATTEMPT} {claim.kind}",
                context=EMPTY if self._links or origin is None else within(NonRecordingSpan(origin)),
                kind=SpanKind.CONSUMER,
                attributes=descriptions.of_claim(claim, messaging=self._messaging),
                links=[Link(origin)] if self._links and origin is not None else [],
            )
            return span if span.is_recording() else None
        return None

    def finish(self, span: Span, move: Transition | None) -> None:
        """End it."""
        with self._failures:
            span.set_attributes(descriptions.of_end(move))
            if move is not None and move.failure is not None:
                span.add_event(names.EXCEPTION, descriptions.exception_of(move.failure))
                span.set_status(descriptions.status_of(move.failure))
            span.end()


class SdkSpans:
    """Spans for the processors of the SDK, by its sampler and its id generator."""

    def __init__(self, tracer: Any, failures: Failures, *, links: bool, messaging: bool) -> None:
        from opentelemetry.sdk.trace import SpanLimits  # noqa: PLC0415 - as above
        from opentelemetry.sdk.trace.id_generator import RandomIdGenerator  # noqa: PLC0415
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope  # noqa: PLC0415

        from perdure.signals.otel.sdk_span import AttemptSpan, Home  # noqa: PLC0415

        self._make = AttemptSpan
        self._home = Home(
            on_end=tracer.span_processor.on_end,
            on_error=failures.log,
            resource=tracer.resource,
            scope=InstrumentationScope(names.SCOPE, __version__),
            limits=getattr(tracer, "_span_limits", None) or SpanLimits(),
            links=links,
            messaging=messaging,
        )
        self._on_start = tracer.span_processor.on_start
        self._on_error = failures.log
        self._sampler = tracer.sampler
        self._answers = answers_of(tracer.sampler)
        self._ids = None if type(tracer.id_generator) is RandomIdGenerator else tracer.id_generator
        self.finish = AttemptSpan.finish
        """End the span of an attempt."""

    def start(self, claim: Claim) -> Span | None:
        """The span of an attempt that starts; None: it is not sampled. Every attempt comes here."""
        meta, answers = claim.meta, self._answers
        try:
            sampled = None if meta is None else carrier.is_sampled(meta)
            if sampled is not None:
                answer = answers.if_sampled if sampled else answers.if_unsampled
                if answer is False:  # before all else: of most jobs no span is made
                    return None
                parent = None if self._home.links else carrier.read(meta)
            else:
                answer = parent = None
            ids = self._ids
            if parent is not None:
                trace_id = parent.trace_id
            else:
                trace_id = getrandbits(128) or 1 if ids is None else ids.generate_trace_id()
            if answer is None and not self._is_sampled(claim, trace_id, is_known=sampled is not None):
                return None
            span_id = getrandbits(64) or 1 if ids is None else ids.generate_span_id()
            span = self._make(self._home, claim, trace_id, span_id, parent)
            self._on_start(span, EMPTY if parent is None else within(NonRecordingSpan(parent)))
        except Exception as error:  # noqa: BLE001 - the program's sampler, ids or processors; costs less than a block
            self._on_error(error)
            return None
        return span

    def _is_sampled(self, claim: Claim, trace_id: int, *, is_known: bool) -> bool:
        """What the sampler says of an attempt. It sees the span that enqueued the job, if that is known."""
        if not is_known and self._answers.bound is not None:
            return trace_id & _LOW_BITS < self._answers.bound
        origin = carrier.read(claim.meta)
        result = self._sampler.should_sample(
            EMPTY if origin is None else within(NonRecordingSpan(origin)),
            trace_id,
            f"{names.ATTEMPT} {claim.kind}",
            SpanKind.CONSUMER,
            descriptions.of_claim(claim, messaging=self._home.messaging),
            [] if origin is None else [Link(origin)],
        )
        is_sampled: bool = result.decision.is_sampled()
        return is_sampled
