"""The span of an attempt, for the SDK's span processors: made cheaply, and filled in when it is read.

A span of the SDK costs about as much as the whole rest of an attempt that does nothing. This one keeps the claim and
the move that ended the attempt, and makes attributes, links, events and status from them when an exporter reads them.
The SDK's own processors, exporters, samplers, id generators and limits see an ordinary span.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import time_ns
from typing import Any, Final

from msgspec import Struct
from opentelemetry.attributes import BoundedAttributes
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, SpanLimits
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.transition import Transition
from perdure.policy.failures import failure_of
from perdure.policy.secrets.redaction import known_secrets, redact_failure
from perdure.signals.otel import carrier, descriptions, names

_FILLED: Final = frozenset(
    {"_context", "_name", "_kind", "_attributes", "_events", "_links", "_status", "_resource"}
    | {"_instrumentation_info", "_instrumentation_scope"}
)


# The constructor of SpanContext is written in Python, and its checks always pass here. If a context is the tuple that
# this module expects, it is made as a tuple.
_FLAGS: Final = TraceFlags(TraceFlags.SAMPLED)
_STATE: Final = SpanContext(1, 1, is_remote=False).trace_state
_IS_KNOWN: Final = tuple(SpanContext(1, 2, False, _FLAGS)) == (1, 2, False, _FLAGS, _STATE, True)
_made: Final = tuple.__new__


class Home(Struct, frozen=True, eq=False):
    """What all attempt spans of one tracer share; `on_error` gets what its processors raise in `on_end`."""

    on_end: Callable[[ReadableSpan], None]
    on_error: Callable[[Exception], None]
    resource: Resource
    scope: InstrumentationScope
    limits: SpanLimits
    links: bool
    messaging: bool


class AttemptSpan(ReadableSpan, Span):
    """The span of one attempt. It ends with the attempt; `end` by other code is ignored."""

    context: SpanContext = None  # type: ignore[assignment] # a field here, which processors read faster than a property
    _parent: SpanContext | None = None
    _end_time: int | None = None
    _move: Transition | None = None
    _said: _Said | None = None

    def __init__(self, home: Home, claim: Claim, trace_id: int, span_id: int, parent: SpanContext | None) -> None:
        """Does not call the base class: `__getattr__` makes a field that is not set here when it is read."""
        self._home = home
        self._claim = claim
        state = _STATE
        if parent is not None:
            self._parent, state = parent, parent.trace_state
        if _IS_KNOWN:
            self.context = _made(SpanContext, (trace_id, span_id, False, _FLAGS, state, True))
        else:
            self.context = SpanContext(trace_id, span_id, is_remote=False, trace_flags=_FLAGS, trace_state=state)
        self._start_time = time_ns()

    def finish(self, move: Transition | None) -> None:
        """End the span with the attempt, and hand it to the processors."""
        self._move = move
        self._end_time = time_ns()
        home = self._home
        try:
            home.on_end(self)
        except Exception as error:  # noqa: BLE001 - the program's processors
            home.on_error(error)

    def __getattr__(self, name: str) -> Any:
        if name not in _FILLED:
            raise AttributeError(name)
        filled = self._filled()
        if self._end_time is not None:
            self.__dict__.update(filled)
        return filled[name]

    def _filled(self) -> dict[str, Any]:
        home, claim, said = self._home, self._claim, self._said or _Said()
        limits, is_over = home.limits, self._end_time is not None
        failure = None if self._move is None else self._move.failure
        attributes = descriptions.of_claim(claim, messaging=home.messaging) | said.attributes
        events, links = list(said.events), list(said.links)
        if is_over:
            attributes |= descriptions.of_end(self._move)
        if failure is not None:
            events.append(Event(names.EXCEPTION, descriptions.exception_of(failure), self._end_time))
        if home.links and (origin := carrier.read(claim.meta)) is not None:
            links.insert(0, Link(origin))
        return {
            "_context": self.context,
            "_name": said.name or f"{names.ATTEMPT} {claim.kind}",
            "_kind": SpanKind.CONSUMER,
            "_attributes": BoundedAttributes(
                limits.max_span_attributes, attributes, immutable=True, max_value_len=limits.max_span_attribute_length
            ),
            "_events": tuple(events[-limits.max_events :] if limits.max_events else events),
            "_links": tuple(links[-limits.max_links :] if limits.max_links else links),
            "_status": said.status if failure is None and said.status else descriptions.status_of(failure),
            "_resource": home.resource,
            "_instrumentation_info": None,
            "_instrumentation_scope": home.scope,
        }

    def _saying(self) -> _Said:
        """Attributes and events that the handler adds; ignored after the end."""
        if self._end_time is not None:
            return _Said()
        self._said = self._said or _Said()
        return self._said

    def get_span_context(self) -> SpanContext:
        """The ids of the span."""
        return self.context

    def is_recording(self) -> bool:
        """Whether the attempt still runs."""
        return self._end_time is None

    def end(self, end_time: int | None = None) -> None:
        """Do nothing: the attempt ends it."""

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        """Add attributes."""
        self._saying().attributes.update(attributes)

    def set_attribute(self, key: str, value: Any) -> None:
        """Add an attribute."""
        self._saying().attributes[key] = value

    def add_event(self, name: str, attributes: Any = None, timestamp: int | None = None) -> None:
        """Add an event."""
        self._saying().events.append(Event(name, self._bounded(attributes), timestamp))

    def add_link(self, context: SpanContext, attributes: Any = None) -> None:
        """Add a link to another span."""
        if context.is_valid:
            self._saying().links.append(Link(context, self._bounded(attributes)))

    def update_name(self, name: str) -> None:
        """Rename the span."""
        self._saying().name = name

    def set_status(self, status: Status | StatusCode, description: str | None = None) -> None:
        """Set the status; that of a failed attempt overrides it, and "ok" is final."""
        said = self._saying()
        new = status if isinstance(status, Status) else Status(status, description)
        if new.status_code is not StatusCode.UNSET and (said.status is None or said.status.status_code.value != 1):
            said.status = new

    def record_exception(
        self, exception: BaseException, attributes: Any = None, timestamp: int | None = None, escaped: bool = False
    ) -> None:
        """Add an exception as an event, without secrets of the job."""
        del escaped
        failure = redact_failure(failure_of(exception), known_secrets(self._claim.args, self._claim.meta))
        self.add_event(names.EXCEPTION, descriptions.exception_of(failure) | dict(attributes or {}), timestamp)

    def _bounded(self, attributes: Any) -> BoundedAttributes:
        limits = self._home.limits
        return BoundedAttributes(limits.max_event_attributes, attributes, max_value_len=limits.max_attribute_length)


class _Said(Struct):
    """Attributes and events that the handler added to the span."""

    attributes: dict[str, Any] = {}
    events: list[Event] = []
    links: list[Link] = []
    status: Status | None = None
    name: str | None = None
