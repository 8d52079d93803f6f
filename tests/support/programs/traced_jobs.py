"""Jobs of an app that exports its traces over OTLP, run in processes of their own."""

from __future__ import annotations

import os
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from perdure import App, Context, Retry
from perdure.otel import instrument

ENDPOINT: Final = "PERDURE_TEST_OTLP"
app = App("sqlite:///unused.db", retry=Retry(attempts=1))
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=os.environ[ENDPOINT], timeout=5)))
instrument(app, tracer_provider=provider)
tracer = provider.get_tracer("a program")


def _fetch() -> int:
    with tracer.start_as_current_span("inside fetch"):
        return os.getpid()


@app.job
async def leaf() -> None: ...


@app.job(isolate=True)
async def apart(ctx: Context) -> int:
    await ctx.spawn([leaf.call()], on_end="keep")
    return await ctx.step("fetch", _fetch)


@app.job(isolate=True)
def dies() -> None:
    with tracer.start_as_current_span("never ends"):
        os._exit(3)
