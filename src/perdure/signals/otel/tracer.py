"""Traces jobs with OpenTelemetry: an app's hooks become spans."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from typing import Any, Final

from opentelemetry import context, trace
from opentelemetry.trace import INVALID_SPAN, NonRecordingSpan, ProxyTracerProvider, Span, Tracer, TracerProvider

from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.outcome import Failure, Parked
from perdure.domain.jobs.transition import Transition
from perdure.flows.park import Park
from perdure.hooks.tracing import CallKind
from perdure.signals.otel import carrier, descriptions, names
from perdure.signals.otel.attempts import attempt_spans
from perdure.signals.otel.carrier import within
from perdure.signals.otel.enqueuing import TracedEnqueue
from perdure.signals.otel.failures import Failures
from perdure.signals.otel.unsampled import UNSAMPLED, WITHIN_UNSAMPLED
from perdure.version import __version__


class OtelTracer:
    """The tracer of one app. Without a provider it uses the global one, as soon as that is set."""

    def __init__(self, provider: TracerProvider | None, *, links: bool, messaging: bool) -> None:
        self._provider = provider
        self._links = links
        self._messaging = messaging
        self._tracer: Tracer | None = None
        self._failures = Failures()
        self.started: Callable[[Claim], Span | None] = self._first_started
        """An attempt starts; its span, if it is sampled."""
        self.ended: Callable[[Any, Transition | None], None] = _not_ended
        """A followed attempt has ended with this move; None: it had lost its claim."""

    def enqueuing(self) -> TracedEnqueue:
        """Around an enqueue of one or more jobs, in the caller's context."""
        return TracedEnqueue(self._found(), self._failures, messaging=self._messaging)

    def enter(self, mark: Span | None) -> Any:
        """Let the code that follows in this thread or task belong to the attempt; a token for `leave`."""
        return context.attach(WITHIN_UNSAMPLED if mark is None else within(mark))

    def leave(self, token: Any) -> None:
        """End what `enter` began."""
        context.detach(token)

    def to_process(self, mark: Span | None) -> dict[str, str] | None:
        """The context of the attempt as headers; None: it is not sampled."""
        return None if mark is None else carrier.inject(mark.get_span_context())

    def in_process(self, trace_context: dict[str, str] | None) -> None:
        """Let everything in this process belong to the attempt."""
        parent = None if trace_context is None else carrier.extract(trace_context)
        mark = None if parent is None else NonRecordingSpan(parent)
        context.attach(WITHIN_UNSAMPLED if mark is None else within(mark))

    def call(self, claim: Claim, kind: CallKind, key: str) -> AbstractContextManager[TracedCall]:
        """Around a call of a function in a step or a poll."""
        if _is_unsampled():
            return _UNTRACED
        name = f"{kind.value} {key.partition('#')[0]}"
        return self._call(name, descriptions.of_call(claim, key))

    def wait(self, parked: Parked, span: timedelta | None) -> AbstractContextManager[None]:
        """Around a wait of the handler."""
        if _is_unsampled():
            return nullcontext()
        return self._wait(parked, span)

    def log_fields(self) -> dict[str, str]:
        """The ids of the current span."""
        current = trace.get_current_span().get_span_context()
        if not current.is_valid:
            return {}
        return {
            "trace_id": trace.format_trace_id(current.trace_id),
            "span_id": trace.format_span_id(current.span_id),
        }

    @contextmanager
    def _call(self, name: str, attributes: dict[str, Any]) -> Iterator[TracedCall]:
        with self._inside(name, attributes) as span:
            yield TracedCall(span)

    @contextmanager
    def _wait(self, parked: Parked, span: timedelta | None) -> Iterator[None]:
        with self._inside(f"{names.WAIT} ({parked.reason})", descriptions.of_wait(parked, span)) as waiting:
            try:
                yield
            except Park:
                waiting.set_attribute(names.WAIT_PARKED, True)
                raise

    @contextmanager
    def _inside(self, name: str, attributes: dict[str, Any]) -> Iterator[Span]:
        """A span inside the current one; without it the current one stays."""
        made: Span | None = None
        with self._failures:
            made = self._found().start_span(name, attributes=attributes)
        if made is None:
            yield INVALID_SPAN
            return
        token = context.attach(trace.set_span_in_context(made))
        try:
            yield made
        finally:
            context.detach(token)
            with self._failures:
                made.end()

    def _found(self) -> Tracer:
        if self._tracer is not None:
            return self._tracer
        provider = self._provider or trace.get_tracer_provider()
        tracer = provider.get_tracer(names.SCOPE, __version__)
        if not isinstance(provider, ProxyTracerProvider):  # else the program may still set one
            self._tracer = tracer
        return tracer

    def _first_started(self, claim: Claim) -> Span | None:
        """As `started`. As soon as there is a provider, its spans take over: every attempt comes here."""
        with self._failures:
            tracer = self._found()
            if self._tracer is not None:
                spans = attempt_spans(tracer, self._failures, links=self._links, messaging=self._messaging)
                self.started, self.ended = spans.start, spans.finish
                return spans.start(claim)
        return None


class TracedCall:
    """A call of the application's function; without a span nothing is recorded."""

    def __init__(self, span: Span | None) -> None:
        self._span = span

    def failed(self, failure: Failure) -> None:
        """The function has raised this error; the job's secrets are masked in it."""
        if self._span is not None:
            self._span.set_attribute(names.ERROR_TYPE, failure.error_type)
            self._span.add_event(names.EXCEPTION, descriptions.exception_of(failure))
            self._span.set_status(descriptions.status_of(failure))

    def pending(self) -> None:
        """The call has no answer yet, or gave a verdict about the whole job."""
        if self._span is not None:
            self._span.set_attribute(names.CALL_PENDING, True)


def _not_ended(_span: Any, _move: Transition | None) -> None:
    """No attempt is followed yet."""


_UNTRACED: Final = nullcontext(TracedCall(None))


def _is_unsampled() -> bool:
    current = trace.get_current_span()
    return current is UNSAMPLED or not current.get_span_context().trace_flags.sampled
