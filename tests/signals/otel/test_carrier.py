"""Trace context in metadata: what the producer writes is read back; what else stands there harms no job."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from opentelemetry.trace import SpanContext, TraceFlags
from opentelemetry.trace.span import TraceState
from tests.signals.otel.conftest import AtWork, Traces

from perdure import App
from perdure.domain.jobs.ids import new_job_id
from perdure.domain.jobs.job import NewJob
from perdure.signals.otel import carrier
from perdure.signals.otel.carrier import Stamp, is_sampled, read

TRACE, SPAN = 0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331
GOOD = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
HOSTILE: list[Any] = [
    "",
    "x" * 10_000,
    "00-" + "z" * 32 + "-" + "z" * 16 + "-01",
    "00-" + "0" * 32 + "-" + "0" * 16 + "-01",
    "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
    "00-0AF7651916CD43DD8448EB211C80319C-B7AD6B7169203331-zz",
    "\x00' OR 1=1 --",
    7,
    None,
    ["00"],
    {"a": {"b": 1}},
]


def _new(**values: Any) -> NewJob:
    return NewJob(id=new_job_id(), kind="a", args="{}", **values)


@pytest.mark.parametrize("sampled", [True, False])
@pytest.mark.parametrize("meta", [None, '{"tenant":"acme"}'])
@pytest.mark.parametrize("state", [[], [("vendor", "a")]])
def test_what_is_written_is_read_back(sampled: bool, meta: str | None, state: list[tuple[str, str]]) -> None:
    context = SpanContext(TRACE, SPAN, False, TraceFlags(sampled), TraceState(state))
    stamped = Stamp(context).on(_new(meta=meta)).meta
    assert stamped is not None
    found = read(stamped)
    assert found is not None
    assert (found.trace_id, found.span_id, found.trace_flags.sampled) == (TRACE, SPAN, sampled)
    assert found.trace_state == TraceState(state)
    assert is_sampled(stamped) is sampled
    assert msgspec.json.decode(stamped).get("tenant") == (None if meta is None else "acme")


@pytest.mark.parametrize("flags", ["00", "01", "02", "03", "ff"])
def test_the_flag_is_read_from_a_traceparent_alone_without_decoding_it(
    flags: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every attempt asks for it. Only bit 0 says that it was sampled."""
    monkeypatch.setattr(carrier, "read", lambda _meta: pytest.fail("it was decoded"))
    meta = msgspec.json.encode({"traceparent": GOOD[:-2] + flags}).decode()
    assert is_sampled(meta) is bool(int(flags, 16) & 1)


@pytest.mark.parametrize(
    "meta",
    [
        '{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","a":"-00"}',
        '{"a":"0af7651916cd43dd8448eb211c80319c","traceparent":"00-0af7651916-00"}',
        '{"nothing":"0af7651916cd43dd8448eb211c80319cb7ad6b716920333100000000-00"}',
    ],
)
def test_metadata_that_only_looks_like_a_traceparent_alone_is_decoded(meta: str) -> None:
    context = read(meta)
    assert is_sampled(meta) is (None if context is None else context.trace_flags.sampled)


def test_metadata_that_has_a_traceparent_keeps_it() -> None:
    meta = msgspec.json.encode({"traceparent": GOOD}).decode()
    assert Stamp(SpanContext(1, 1, False, TraceFlags(1))).on(_new(meta=meta)).meta == meta


def test_without_a_valid_span_nothing_is_written() -> None:
    job = _new()
    assert Stamp(SpanContext(0, 0, False)).on(job) is job


@pytest.mark.parametrize("value", HOSTILE)
def test_what_cannot_be_read_counts_as_absent(value: Any) -> None:
    assert read(msgspec.json.encode({"traceparent": value}).decode()) is None
    assert read(msgspec.json.encode({"traceparent": GOOD, "tracestate": value}).decode()) is not None
    for broken in ("[]", "7", "{", '"', "[" * 100_000, ""):
        assert read(broken) is None


async def test_hostile_metadata_fails_no_job(app: App, traces: Traces, at_work: AtWork) -> None:
    @app.job
    async def work() -> int:
        return 1

    async with at_work():
        handles = [await work.using(meta={"traceparent": value}).enqueue() for value in HOSTILE]
        assert [await handle.result("30s") for handle in handles] == [1] * len(handles)
        attempts = await traces.some("attempt work", len(handles))
    assert [attempt.links for attempt in attempts] == [()] * len(handles)
