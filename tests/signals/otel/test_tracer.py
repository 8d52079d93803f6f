"""Traces of jobs, as a program that exports them sees them; on both engines, with a real worker."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode
from tests.signals.otel.conftest import AtWork, Traces
from tests.support.waiting import until

from perdure import App, Context, JobNotSuccessful, Pending, Secret, SyncContext
from perdure.otel import instrument

SECRET = "hunter2-hunter2"  # noqa: S105 - of a test


def _context(span: ReadableSpan) -> tuple[int, int]:
    assert span.context is not None
    return span.context.trace_id, span.context.span_id


def _linked(span: ReadableSpan) -> list[tuple[int, int]]:
    return [(link.context.trace_id, link.context.span_id) for link in span.links]


def _parent(span: ReadableSpan) -> tuple[int, int] | None:
    return None if span.parent is None else (span.parent.trace_id, span.parent.span_id)


def _said(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


async def test_e5_an_attempt_links_to_the_span_that_enqueued_its_job(app: App, traces: Traces, at_work: AtWork) -> None:
    @app.job(queue="mail")
    async def send() -> str:
        return "sent"

    tracer = traces.provider.get_tracer("a program")
    async with at_work():
        with tracer.start_as_current_span("request"):
            handle = await send.using(ref="M-1").enqueue()
        assert await handle.result("30s") == "sent"
        attempt = await traces.one("attempt send")
    enqueue, request = await traces.one("enqueue send"), await traces.one("request")

    assert enqueue.kind is SpanKind.PRODUCER
    assert _parent(enqueue) == _context(request)
    assert _said(enqueue) == {
        "perdure.enqueue.jobs": 1,
        "perdure.enqueue.intake": "new",
        "perdure.job.id": handle.id,
        "perdure.job.kind": "send",
        "perdure.job.queue": "mail",
        "perdure.job.ref": "M-1",
    }
    assert attempt.kind is SpanKind.CONSUMER
    assert attempt.parent is None
    assert _linked(attempt) == [_context(enqueue)]
    assert _context(attempt)[0] != _context(enqueue)[0]
    assert attempt.status.status_code is StatusCode.UNSET
    said = _said(attempt)
    assert said.pop("perdure.attempt.waited") >= 0
    assert said == {
        "perdure.job.id": handle.id,
        "perdure.job.kind": "send",
        "perdure.job.queue": "mail",
        "perdure.job.ref": "M-1",
        "perdure.job.attempt": 1,
        "perdure.attempt.state": "succeeded",
        "perdure.attempt.reason": "done",
    }
    assert attempt.start_time is not None
    assert attempt.end_time is not None
    assert attempt.start_time <= attempt.end_time


async def test_by_option_an_attempt_is_a_child_of_the_enqueue_and_says_what_messages_say(
    bare_app: App, traces: Traces, at_work: AtWork
) -> None:
    instrument(bare_app, tracer_provider=traces.provider, parent=True, messaging=True)

    @bare_app.job
    def work() -> None: ...

    async with at_work():
        handle = await work.enqueue()
        await handle.result("30s")
        attempt = await traces.one("attempt work")
    enqueue = await traces.one("enqueue work")
    assert _parent(attempt) == _context(enqueue)
    assert attempt.links == ()
    messaging = {name: value for name, value in _said(attempt).items() if name.startswith("messaging.")}
    assert messaging == {
        "messaging.system": "perdure",
        "messaging.destination.name": "default",
        "messaging.operation.name": "attempt",
        "messaging.operation.type": "process",
        "messaging.message.id": handle.id,
    }
    assert _said(enqueue)["messaging.operation.type"] == "send"


async def test_a_handlers_own_spans_belong_to_its_attempt_in_tasks_and_in_threads(
    app: App, traces: Traces, at_work: AtWork
) -> None:
    tracer = traces.provider.get_tracer("a program")

    @app.job
    async def soon() -> None:
        await asyncio.sleep(0)
        with tracer.start_as_current_span("inside soon"):
            trace.get_current_span().set_attribute("mine", 1)

    @app.job
    def blocking() -> None:
        trace.get_current_span().set_attribute("own", "words")
        trace.get_current_span().add_event("half way")
        with tracer.start_as_current_span("inside blocking"):
            pass

    async with at_work():
        with tracer.start_as_current_span("another"):  # the worker must not take it for its own
            for _ in range(2):
                for job in (soon, blocking):
                    await (await job.enqueue()).result("30s")
        attempts = {
            _context(span): span for name in ("soon", "blocking") for span in await traces.some(f"attempt {name}", 2)
        }
        for name in ("soon", "blocking"):
            for span in await traces.some(f"inside {name}", 2):
                assert attempts[_parent(span) or (0, 0)].name == f"attempt {name}"
    (blocked, _) = traces.named("attempt blocking")
    assert _said(blocked)["own"] == "words"
    assert [event.name for event in blocked.events] == ["half way"]
    assert all(span.parent is None for span in attempts.values())


async def test_steps_polls_and_waits_are_children_and_what_was_done_before_is_not_reported_again(
    app: App, traces: Traces, at_work: AtWork
) -> None:
    tracer, polls = traces.provider.get_tracer("a program"), []

    async def fetch() -> int:
        with tracer.start_as_current_span("inside fetch"):
            return 1

    def count() -> int:
        with tracer.start_as_current_span("inside count"):
            return 2

    async def ask() -> int:
        polls.append(1)
        if len(polls) < 2:
            raise Pending("300ms")
        return 3

    @app.job
    async def flow(ctx: Context) -> int:
        got = await ctx.step("fetch", fetch) + await ctx.step("count", count) + await ctx.poll("ask", ask)
        await ctx.wait_for("go")
        return got

    @app.job
    def flow_in_thread(ctx: SyncContext) -> int:
        got = ctx.step("fetch", fetch) + ctx.step("count", count)
        ctx.sleep("300ms")
        return got

    async with at_work():
        handle = await flow.enqueue()
        parked = await traces.one("wait (waiting for an event)")
        await app.emit("go")
        assert await handle.result("30s") == 6
        first, second = await traces.some("attempt flow", 2)
        assert await (await flow_in_thread.enqueue()).result("30s") == 3
        threaded = await traces.one("attempt flow_in_thread")

    assert _said(first)["perdure.attempt.state"] in {"waiting", "ready"}
    assert _said(second)["perdure.attempt.state"] == "succeeded"
    assert _said(parked) == {
        "perdure.wait.reason": "waiting for an event",
        "perdure.wait.event": "go",
        "perdure.wait.parked": True,
    }
    assert _parent(parked) == _context(first)
    (pending, answered) = traces.named("poll ask")
    assert _said(pending)["perdure.call.pending"] is True
    assert "perdure.call.pending" not in _said(answered)
    assert {_parent(pending), _parent(answered)} == {_context(first)}
    assert _said(traces.named("wait (still pending)")[0])["perdure.wait.seconds"] > 0
    for name in ("fetch", "count"):
        steps = traces.named(f"step {name}")
        assert [_parent(step) for step in steps] == [_context(first), _context(threaded)]
        assert [_parent(inside) for inside in traces.named(f"inside {name}")] == [_context(step) for step in steps]
    assert _parent(traces.named("wait (sleeping)")[0]) == _context(threaded)
    assert all(span.status.status_code is StatusCode.UNSET for span in traces.spans)


async def test_a_failed_attempt_and_a_failed_step_are_errors_without_secrets(
    app: App, traces: Traces, at_work: AtWork
) -> None:
    def refuse(card: str) -> None:
        raise ValueError(f"refused: {card} and password=also-secret-1")

    @app.job
    async def charge(ctx: Context, card: Secret[str]) -> None:
        await ctx.step("pay", refuse, card.reveal())

    @app.job
    def charge_in_thread(card: Secret[str]) -> None:
        try:
            refuse(card.reveal())
        except ValueError as error:
            trace.get_current_span().record_exception(error)
            raise

    async with at_work():
        for job in (charge, charge_in_thread):
            with pytest.raises(JobNotSuccessful):
                await (await job.enqueue(Secret(SECRET))).result("30s")
        for name in ("charge", "charge_in_thread"):
            tried, died = await traces.some(f"attempt {name}", 2)
            assert _said(tried)["perdure.attempt.state"] == "retrying"
            assert _said(tried)["perdure.attempt.retry_in"] == 0.01
            assert _said(died)["perdure.attempt.state"] == "dead"
            assert _said(died)["perdure.job.attempt"] == 2
    errors = [span for span in traces.spans if span.status.status_code is StatusCode.ERROR]
    assert [span.name for span in errors].count("step pay") == 2
    assert len(errors) == 6
    for span in errors:
        assert _said(span)["error.type"] == "ValueError"
        event = dict(span.events[-1].attributes or {})
        assert span.events[-1].name == "exception"
        assert event["exception.type"] == "ValueError"
        assert event["exception.message"] == "refused: *** and password=***"
        assert "refuse" in str(event["exception.stacktrace"])
    assert SECRET not in "".join(span.to_json() for span in traces.spans)
    assert "also-secret" not in "".join(span.to_json() for span in traces.spans)


async def test_children_batches_and_chains_are_linked_to_what_made_them(
    app: App, traces: Traces, at_work: AtWork
) -> None:
    @app.job
    async def leaf(n: int) -> int:
        return n

    @app.job
    async def after(result: int) -> int:
        return result + 1

    @app.job
    async def parent(ctx: Context) -> int:
        return sum(await ctx.gather(leaf.call(n) for n in (1, 2)))

    @app.job
    def parent_in_thread(ctx: SyncContext) -> int:
        return sum(ctx.gather([leaf.call(3)]))

    async with at_work():
        assert await (await parent.enqueue()).result("30s") == 3
        (spawning,) = traces.named("enqueue leaf")
        leaves = await traces.some("attempt leaf", 2)
        assert [_linked(span) for span in leaves] == [[_context(spawning)]] * 2
        assert _said(spawning)["perdure.enqueue.jobs"] == 2
        assert _parent(spawning) == _context(traces.named("attempt parent")[0])
        assert len({_said(leaf)["perdure.job.parent"] for leaf in leaves}) == 1

        traces.memory.clear()
        assert await (await parent_in_thread.enqueue()).result("30s") == 3
        assert _parent(traces.named("enqueue leaf")[0]) == _context(traces.named("attempt parent_in_thread")[0])

        traces.memory.clear()
        assert await (await (leaf.call(1) | after.after() | after.after()).enqueue()).result("30s") == 3
        chain = await traces.one("enqueue perdure.chain")
        links = await traces.some("attempt after", 2) + traces.named("attempt leaf")
        assert [_linked(span) for span in links] == [[_context(chain)]] * 3

        traces.memory.clear()
        await (await app.batch([leaf.call(1)], then=leaf.call(2))).result("30s")
        await traces.some("attempt leaf", 2)
        made = [_context(span) for span in traces.named("enqueue leaf")]
        assert sorted(link for span in traces.named("attempt leaf") for link in _linked(span)) == sorted(made)


async def test_many_jobs_at_once_are_one_span_sync_and_async_and_a_refused_enqueue_is_an_error(
    app: App, traces: Traces
) -> None:
    @app.job
    async def one(n: int) -> None: ...

    @app.job
    async def other() -> None: ...

    await app.enqueue_many([one.call(n) for n in range(3)] + [other.call()])
    await asyncio.to_thread(app.enqueue_many_sync, [one.call(4), one.call(5)])
    await asyncio.to_thread(one.enqueue_sync, 6)
    first, second, third = traces.spans
    assert (first.name, _said(first)) == (
        "enqueue",
        {"perdure.enqueue.jobs": 4, "perdure.job.queue": "default"},
    )
    assert (second.name, _said(second)["perdure.enqueue.jobs"]) == ("enqueue one", 2)
    assert (third.name, _said(third)["perdure.enqueue.intake"]) == ("enqueue one", "new")
    await asyncio.to_thread(app.close_sync)

    def broken() -> Any:
        yield one.call(1)
        raise ValueError(f"no more; token={SECRET}")

    with pytest.raises(ValueError, match="no more"):
        await app.enqueue_many(broken())
    assert traces.spans[-1].status.status_code is StatusCode.ERROR
    assert SECRET not in traces.spans[-1].to_json()


async def test_jobs_of_a_schedule_are_linked_to_the_span_that_fired_it(
    app: App, traces: Traces, at_work: AtWork
) -> None:
    @app.cron("@every 1s")
    async def tick() -> None: ...

    async with at_work():
        await until(lambda: traces.named("attempt tick"))
    attempt, fired = traces.named("attempt tick")[0], traces.named("enqueue tick")[0]
    assert _linked(attempt) == [_context(fired)]
    assert fired.parent is None
