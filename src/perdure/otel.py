"""OpenTelemetry for an app: spans for enqueues, attempts, steps, polls and waits; metrics; trace ids in the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from perdure.app.app import App
from perdure.errors import ConflictError, SettingsError
from perdure.signals.otel.extra import missing_otel

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

__all__ = ["add_trace_ids", "instrument"]


def instrument(
    app: App,
    *,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    parent: bool = False,
    messaging: bool = False,
) -> Callable[[], None]:
    """Trace and measure the jobs of an app, before its workers are made; returns a function that stops it.

    An enqueue is a producer span, whose context travels in the job's metadata. Each attempt is a consumer span that
    links to it, in a trace of its own; with `parent` it is a child of that span, in the same trace. Steps,
    polls and waits are children of the attempt, and so are the spans that a handler makes.

    Without providers the global ones are used. The sampler decides about enqueues; attempts follow their enqueue.
    Metrics are what the workers of this process count anyway, read when they are exported.
    `messaging` adds the attributes of OpenTelemetry's conventions for messaging, which are not settled for jobs.
    """
    try:
        from perdure.signals.otel.metrics import OtelMetrics  # noqa: PLC0415 - OpenTelemetry is an extra
        from perdure.signals.otel.tracer import OtelTracer  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise missing_otel(error) from None
    if not isinstance(app, App):
        raise SettingsError("app", f"must be an App, got {app!r}")
    if app.hooks.tracer is not None:
        raise ConflictError("this app is traced already: instrument it once, or stop the other tracing first")
    tracer = OtelTracer(tracer_provider, links=not parent, messaging=messaging)
    metrics = OtelMetrics(meter_provider, app.events, app.enqueued)
    app.hooks.tracer, app.hooks.on_worker = tracer, metrics.on_worker

    def stop() -> None:
        if app.hooks.tracer is tracer:
            app.hooks.tracer = app.hooks.on_worker = None
            metrics.close()

    return stop


def add_trace_ids(_logger: Any, _method: str, event: dict[str, Any]) -> dict[str, Any]:
    """A processor of structlog that adds `trace_id` and `span_id` of the current span to every line."""
    try:
        from opentelemetry import trace  # noqa: PLC0415 - it is an extra
    except ModuleNotFoundError as error:
        raise missing_otel(error) from None
    current = trace.get_current_span().get_span_context()
    if current.is_valid:
        event["trace_id"] = trace.format_trace_id(current.trace_id)
        event["span_id"] = trace.format_span_id(current.span_id)
    return event
