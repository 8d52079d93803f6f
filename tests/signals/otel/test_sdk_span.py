"""The span of an attempt as processors of the SDK see it."""

from __future__ import annotations

from typing import Any, cast

import pytest
from opentelemetry.trace import SpanContext, TraceFlags

from perdure.signals.otel import sdk_span
from perdure.signals.otel.sdk_span import AttemptSpan


@pytest.mark.parametrize("known", [True, False])
def test_its_ids_are_an_ordinary_context(known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made as a tuple where that is what contexts are, else by their constructor."""
    assert sdk_span._IS_KNOWN
    monkeypatch.setattr(sdk_span, "_IS_KNOWN", known)
    span = AttemptSpan(cast("Any", None), cast("Any", None), 1 << 127, 3, None)
    expected = SpanContext(1 << 127, 3, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    assert span.context == span.get_span_context() == expected
    assert span.context.is_valid
    assert type(span.context) is SpanContext
    assert span.context.trace_state == expected.trace_state
