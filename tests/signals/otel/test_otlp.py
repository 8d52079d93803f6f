"""Traces reach a real OTLP receiver, those of isolated attempts included, also when their process dies."""

from __future__ import annotations

import asyncio
import gzip
import importlib
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from tests.support.receiver import Receiver, receiving
from tests.support.waiting import until

from perdure import App, JobNotSuccessful, WorkerSettings


def _spans(receiver: Receiver) -> dict[str, Span]:
    """The spans that came in, by name."""
    found: dict[str, Span] = {}
    for request in receiver.received:
        body = gzip.decompress(request.body) if request.headers.get("content-encoding") == "gzip" else request.body
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            found |= {span.name: span for scope in resource.scope_spans for span in scope.spans}
    return found


@pytest.mark.slow
async def test_spans_of_isolated_attempts_arrive_over_otlp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with receiving() as receiver:
        receiver.body = b""
        monkeypatch.setenv("PERDURE_TEST_OTLP", f"http://127.0.0.1:{receiver.port}/v1/traces")
        program = importlib.import_module("tests.support.programs.traced_jobs")
        async with App(f"sqlite:///{tmp_path / 'jobs.db'}") as app:
            app.kinds.update(program.app.kinds)
            app.hooks = program.app.hooks
            worker = await app.worker(WorkerSettings(poll="20ms", grace="5s", stop_timeout="5s"))
            running = asyncio.create_task(worker.run())
            assert await (await app.job_named("apart").enqueue()).result("60s")
            with pytest.raises(JobNotSuccessful):
                await (await app.job_named("dies").enqueue()).result("60s")
            await until(lambda: worker.finished >= 3)
            worker.stop()
            await asyncio.wait_for(running, 60)
        await asyncio.to_thread(program.provider.force_flush)
        wanted = {"enqueue apart", "attempt apart", "step fetch", "inside fetch", "enqueue leaf", "attempt leaf"}
        await until(lambda: wanted | {"attempt dies"} <= _spans(receiver).keys())
        spans = _spans(receiver)
        await asyncio.to_thread(program.provider.shutdown)

    assert spans["attempt apart"].links[0].span_id == spans["enqueue apart"].span_id
    assert spans["step fetch"].parent_span_id == spans["attempt apart"].span_id
    assert spans["inside fetch"].parent_span_id == spans["step fetch"].span_id
    assert spans["enqueue leaf"].parent_span_id == spans["attempt apart"].span_id
    assert spans["attempt leaf"].links[0].span_id == spans["enqueue leaf"].span_id
    assert spans["attempt apart"].kind == Span.SPAN_KIND_CONSUMER
    assert spans["attempt dies"].status.code == Status.STATUS_CODE_ERROR
    assert "exited" in spans["attempt dies"].status.message or "ended" in spans["attempt dies"].status.message
    assert "never ends" not in spans
