"""The span of every attempt that is not sampled: one object, so that such an attempt costs nothing.

Spans that a handler makes see an unsampled parent, and are not sampled either. Its ids are made when they are asked
for: those of the span that enqueued the job, or else derived from the job's id, the same for the whole attempt.
"""

from __future__ import annotations

from typing import Final

from opentelemetry.trace import INVALID_SPAN_CONTEXT, NonRecordingSpan, SpanContext, TraceFlags

from perdure.signals.otel import carrier
from perdure.worker.attempt.context.context import current_context

_DEFAULT: Final = TraceFlags(TraceFlags.DEFAULT)
_LOW_BITS: Final = (1 << 64) - 1


class Unsampled(NonRecordingSpan):
    """A span that records nothing; outside of attempts it is not valid."""

    def __init__(self) -> None:
        super().__init__(INVALID_SPAN_CONTEXT)

    def get_span_context(self) -> SpanContext:
        """The ids for the current attempt."""
        context = current_context()
        if context is None:
            return INVALID_SPAN_CONTEXT
        origin = carrier.extract(context.meta)
        if origin is not None:
            return SpanContext(origin.trace_id, origin.span_id, is_remote=True, trace_flags=_DEFAULT)
        trace_id = int(context.job_id.replace("-", ""), 16)
        span_id = (trace_id ^ context.token) & _LOW_BITS or 1
        return SpanContext(trace_id, span_id, is_remote=False, trace_flags=_DEFAULT)


UNSAMPLED: Final = Unsampled()
WITHIN_UNSAMPLED: Final = carrier.within(UNSAMPLED)
