"""Trace context in a job's metadata, as W3C Trace Context writes it: `traceparent` and `tracestate`.

Any program can write metadata, so an unreadable value counts as absent.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec.structs import replace
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import SpanContext
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from perdure.domain.flows.plan import Planned
from perdure.domain.jobs.job import NewJob

TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"
EMPTY: Final = Context()
_SPAN_KEY: Final = next(iter(trace.set_span_in_context(trace.INVALID_SPAN, EMPTY)))  # the key of the span in a context
_PROPAGATOR: Final = TraceContextTextMapPropagator()
_HEAD: Final = '{"traceparent":"00-'
_META_CHARACTERS: Final = 73  # of metadata that is a traceparent of version 00 and nothing else
_START, _STOP = 16, 71
_AT_HEAD: Final = slice(len(_HEAD))
_AT_FLAGS: Final = slice(69, None)  # so that only metadata of that length ends with one of these
_FLAGS: Final = {f'{flags:02x}"}}': bool(flags & 1) for flags in range(256)}
_HEADER_LIMIT_CHARACTERS: Final = 512


def is_sampled(meta: str) -> bool | None:
    """Whether the enqueue of a job with this metadata was sampled; None: it is not known.

    Every attempt calls this. So metadata with a traceparent alone, the usual case, is not decoded; its ids are checked
    when a span needs them.
    """
    if meta[_AT_HEAD] == _HEAD and (sampled := _FLAGS.get(meta[_AT_FLAGS])) is not None:
        return sampled
    context = read(meta)
    return None if context is None else context.trace_flags.sampled


def read(meta: str | None) -> SpanContext | None:
    """The span that enqueued a job with this metadata; None: there is none, or it cannot be read."""
    if meta is None:
        return None
    if len(meta) == _META_CHARACTERS and meta.startswith(_HEAD):
        return extract({TRACEPARENT: meta[_START:_STOP]})
    try:
        document = msgspec.json.decode(meta)
    except (msgspec.DecodeError, RecursionError):
        return None
    return extract(document) if isinstance(document, dict) else None


def extract(document: dict[str, Any]) -> SpanContext | None:
    """The span context in a document of headers; None: there is none, or it cannot be read."""
    parent, state = document.get(TRACEPARENT), document.get(TRACESTATE)
    if not isinstance(parent, str) or len(parent) > _HEADER_LIMIT_CHARACTERS:
        return None
    headers = {TRACEPARENT: parent}
    if isinstance(state, str) and len(state) <= _HEADER_LIMIT_CHARACTERS:
        headers[TRACESTATE] = state
    try:
        context = trace.get_current_span(_PROPAGATOR.extract(headers, EMPTY)).get_span_context()
    except Exception:  # noqa: BLE001 - a header from anywhere must not harm the job
        return None
    return context if context.is_valid else None


def within(span: trace.Span) -> Context:
    """A context that holds this span and nothing else: `set_span_in_context` in half the time."""
    return Context({_SPAN_KEY: span})


def inject(context: SpanContext) -> dict[str, str]:
    """A span context as headers; empty if it is not valid."""
    headers: dict[str, str] = {}
    if context.is_valid:
        _PROPAGATOR.inject(headers, within(trace.NonRecordingSpan(context)))
    return headers


class Stamp:
    """Writes one span context into the metadata of jobs. Metadata that holds a traceparent keeps it."""

    def __init__(self, context: SpanContext) -> None:
        self._headers = inject(context)
        self._alone = msgspec.json.encode(self._headers).decode()

    def on(self, job: NewJob) -> NewJob:
        """The job with the context, and with it the links of a chain, which are made later."""
        if not self._headers:
            return job
        if job.plan:
            return replace(job, meta=self._meta(job.meta), plan=tuple(map(self._planned, job.plan)))
        return replace(job, meta=self._meta(job.meta))

    def _meta(self, meta: str | None) -> str:
        if meta is None:
            return self._alone
        document = msgspec.json.decode(meta)
        if TRACEPARENT in document:
            return meta
        return msgspec.json.encode(document | self._headers).decode()

    def _planned(self, document: str) -> str:
        plan = msgspec.json.decode(document, type=Planned)
        return msgspec.json.encode(replace(plan, meta=self._meta(plan.meta))).decode()
