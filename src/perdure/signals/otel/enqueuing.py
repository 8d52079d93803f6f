"""The producer span around an enqueue, whose context travels in the metadata of its jobs."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from opentelemetry import context, trace
from opentelemetry.trace import INVALID_SPAN, Span, SpanKind, Tracer

from perdure.domain.jobs.job import NewJob, Receipt
from perdure.policy.failures import failure_of
from perdure.policy.secrets.redaction import known_secrets, redact_failure
from perdure.signals.otel import descriptions, names
from perdure.signals.otel.carrier import Stamp
from perdure.signals.otel.failures import Failures


class TracedEnqueue:
    """One enqueue, of one job or many: one span. A child of the caller's span, if there is one."""

    def __init__(self, tracer: Tracer, failures: Failures, *, messaging: bool) -> None:
        self._tracer = tracer
        self._failures = failures
        self._messaging = messaging
        self._first: NewJob | None = None
        self._count = 0
        self._kinds: set[str] = set()
        self._queues: set[str] = set()

    def __enter__(self) -> Self:
        self._span: Span = INVALID_SPAN
        with self._failures:
            self._span = self._tracer.start_span(names.ENQUEUE, kind=SpanKind.PRODUCER)
        self._stamp = Stamp(self._span.get_span_context())
        self._token = context.attach(trace.set_span_in_context(self._span))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        context.detach(self._token)
        if self._span.is_recording():
            with self._failures:
                self._end(error)

    def _end(self, error: BaseException | None) -> None:
        if (first := self._first) is not None:
            if len(self._kinds) == 1:
                self._span.update_name(f"{names.ENQUEUE} {first.kind}")
            said = descriptions.of_jobs(first, self._count, self._kinds, self._queues, messaging=self._messaging)
            self._span.set_attributes(said)
        if isinstance(error, Exception):
            secrets = () if first is None else known_secrets(first.args, first.meta)
            failure = redact_failure(failure_of(error), secrets)
            self._span.set_attribute(names.ERROR_TYPE, failure.error_type)
            self._span.add_event(names.EXCEPTION, descriptions.exception_of(failure))
            self._span.set_status(descriptions.status_of(failure))
        self._span.end()

    def stamp(self, job: NewJob) -> NewJob:
        """The job with the context of the span."""
        if self._first is None:
            self._first = job
        self._count += 1
        self._kinds.add(job.kind)
        self._queues.add(job.queue)
        return self._stamp.on(job)

    def stored(self, receipts: Sequence[Receipt]) -> None:
        """Note the outcome of a single enqueue: the job may have existed."""
        if len(receipts) == 1 and self._count == 1:
            self._span.set_attribute(names.ENQUEUE_INTAKE, receipts[0].intake.value)
            if self._first is not None and receipts[0].job_id != self._first.id:
                self._span.set_attribute(names.JOB_ID, receipts[0].job_id)
