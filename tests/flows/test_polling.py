"""Slow authorities are asked politely, for as long as it takes, and without holding a worker."""

from __future__ import annotations

import asyncio
import json
import ssl
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.support.builders.jobs import enqueue
from tests.support.working import at_work, seen

from perdure import (
    App,
    ArgumentError,
    Backoff,
    Context,
    HttpTriage,
    Jitter,
    JobState,
    Pending,
    Permanent,
    Retry,
    SyncContext,
)
from perdure.storage.port import Store
from perdure.testing import Sandbox

STEADY = Jitter.none()
D4 = [0, 5, 20, 65, 185, 485, 600]


class Authority:
    """A certificate authority that is asked for an order, and says what it is told to."""

    def __init__(self, box: Sandbox, *says: Any) -> None:
        self._box = box
        self._begun = box.now
        self._says = list(says)
        self.asked: list[float] = []

    async def status(self, order: int) -> str:
        self.asked.append((self._box.now - self._begun).total_seconds())
        says = self._says.pop(0) if len(self._says) > 1 else self._says[0]
        if isinstance(says, Exception):
            raise says
        return f"{says} {order}"

    def status_now(self, order: int) -> str:
        coroutine = self.status(order)
        try:
            coroutine.send(None)
        except StopIteration as end:
            return str(end.value)
        raise AssertionError


class Refusal(Exception):  # noqa: N818 - as some clients call it
    """What an HTTP client raises for an answer that is no success."""

    def __init__(self, status: int, **headers: str) -> None:
        super().__init__(f"HTTP {status}")
        self.response = type("Response", (), {"status_code": status, "headers": headers})


async def test_d4_polls_come_at_the_times_of_the_table_and_once_more_at_the_deadline(app: App, box: Sandbox) -> None:
    ca = Authority(box, Pending())

    @app.job
    async def issue(ctx: Context) -> None:
        await ctx.poll("issued", ca.status, 7, jitter=STEADY)

    handle = await issue.enqueue()
    await box.drain(travel="14m")
    view = await box.job(handle)
    assert ca.asked == D4
    assert (view.state, view.failures) == (JobState.WAITING, 0)
    assert view.reason == "still pending: issued, poll 7: no answer yet"


async def test_d4_a_new_round_begins_after_a_rest_with_the_count_kept(app: App, box: Sandbox) -> None:
    ca = Authority(box, *[Pending()] * 9, "issued")

    @app.job
    async def issue(ctx: Context) -> str:
        return await ctx.poll("issued", ca.status, 7, jitter=STEADY, rest="1h")

    handle = await issue.enqueue()
    await box.drain(travel=True)
    assert ca.asked == [*D4, 4_200, 4_205, 4_220]
    assert await handle.result() == "issued 7"
    [step] = (await (await app.desk("me")).job(handle.id)).steps
    assert (step.tries, step.state.value) == (10, "done")


async def test_d2_every_wait_is_drawn_from_twenty_percent_around_the_table(app: App, box: Sandbox) -> None:
    ca = Authority(box, *[Pending()] * 5, "issued")

    @app.job
    async def issue(ctx: Context) -> None:
        await ctx.poll("issued", ca.status, 7)

    await issue.enqueue()
    await box.drain(travel=True)
    waits = [after - before for before, after in zip(ca.asked, ca.asked[1:], strict=False)]
    table = [5, 15, 45, 120, 300]
    assert all(0.8 * wait <= drawn <= 1.2 * wait for wait, drawn in zip(table, waits, strict=True))
    assert all(drawn != wait for wait, drawn in zip(table, waits, strict=True)), "the original's jitter was 0"


async def test_d1_the_time_of_a_round_is_a_setting(app: App, box: Sandbox) -> None:
    ca = Authority(box, Pending())

    @app.job(retry=Retry.none())
    async def issue(ctx: Context) -> None:
        await ctx.poll("issued", ca.status, 7, jitter=STEADY, within="60s", then="raise")

    handle = await issue.enqueue()
    await box.drain(travel=True)
    assert ca.asked == [0, 5, 20, 60]
    assert (await box.job(handle)).last_error == (
        "perdure.PollTimeout: issued is still pending after 4 polls: no answer yet"
    )


async def test_d4_a_round_counts_from_its_first_poll_however_long_that_takes(app: App, box: Sandbox) -> None:
    ca = Authority(box, Pending())

    async def slow() -> str:
        try:
            return await ca.status(7)
        finally:
            box.travel("20s")

    @app.job(retry=Retry.none())
    async def issue(ctx: Context) -> None:
        await ctx.poll("issued", slow, jitter=STEADY, within="60s", then="raise")

    await issue.enqueue()
    await box.drain(travel=True)
    assert ca.asked == [0, 25, 60]


async def test_d4_the_jobs_retry_polls_again_in_a_later_round(app: App, box: Sandbox) -> None:
    ca = Authority(box, *[Pending()] * 5, "issued")

    @app.job(retry=Retry(attempts=2, backoff=Backoff.fixed("1h"), jitter=STEADY))
    async def issue(ctx: Context) -> str:
        return await ctx.poll("issued", ca.status, 7, jitter=STEADY, within="60s", then="raise")

    handle = await issue.enqueue()
    await box.drain(travel=True)
    assert (ca.asked, await handle.result()) == ([0, 5, 20, 60, 3_660, 3_665], "issued 7")


@pytest.mark.parametrize("form", ["span", "instant"])
async def test_a_deadline_over_all_rounds_is_followed_by_one_last_poll(app: App, box: Sandbox, form: str) -> None:
    ca = Authority(box, Pending())
    deadline: Any = "1h" if form == "span" else box.now + timedelta(hours=1)

    @app.job(retry=Retry.none())
    async def issue(ctx: Context) -> None:
        await ctx.poll("issued", ca.status, 7, jitter=STEADY, rest="2h", deadline=deadline)

    handle = await issue.enqueue()
    await box.drain(travel=True)
    assert ca.asked == [*D4, 3_600]
    assert "still pending after 8 polls" in ((await box.job(handle)).last_error or "")


TRIAGE = [
    ("issued", True, None),
    (Pending(), True, None),
    (Refusal(429), True, None),
    (Refusal(503), True, None),
    (ConnectionResetError("reset"), True, None),
    (ssl.SSLError("handshake"), True, None),
    (TimeoutError(), True, None),
    (Refusal(400), False, "HTTP 400"),
    (Refusal(401), False, "HTTP 401"),
    (Refusal(403), False, "HTTP 403"),
    (Refusal(404), False, "HTTP 404"),
    (ValueError("unreadable body"), False, "unreadable body"),
    (Permanent("rejected"), False, "rejected"),
]


@pytest.mark.parametrize(("says", "is_fine", "error"), TRIAGE, ids=[repr(says) for says, _, _ in TRIAGE])
@pytest.mark.parametrize("triage", [None, HttpTriage(), HttpTriage(polling=True)], ids=["none", "http", "polling"])
async def test_d3_answers_are_judged_by_the_jobs_triage(
    app: App, says: Any, is_fine: bool, error: str | None, triage: Any
) -> None:
    async with Sandbox(app) as box:
        ca = Authority(box, says, "issued")

        @app.job(triage=triage, retry=Retry.none())
        async def issue(ctx: Context) -> str:
            return await ctx.poll("issued", ca.status, 7, jitter=STEADY)

        handle = await issue.enqueue()
        await box.drain(travel=True)
        view = await box.job(handle)
    if is_fine:
        assert (view.state, view.result) == (JobState.SUCCEEDED, '"issued 7"')
    else:
        assert (view.state, ca.asked) == (JobState.DEAD, [0])
        assert (view.last_error or "").endswith(error or "")


async def test_d5_the_desk_shows_how_far_the_polls_of_many_jobs_are(app: App, box: Sandbox) -> None:
    ca = Authority(box, Pending())

    @app.job
    async def issue(ctx: Context) -> str:
        return await ctx.poll("issued", ca.status, 7, jitter=STEADY)

    handles = [await issue.enqueue() for _ in range(2)]
    unknown = "01890000-0000-7000-8000-000000000000"
    begun, desk = box.now, await app.desk("me")
    await box.drain(travel="20s")
    found = await desk.steps([*(handle.id for handle in handles), unknown])
    assert set(found) == {handle.id for handle in handles}
    for [step] in found.values():
        assert (step.key, step.tries, step.note, step.due_at) == (
            "issued",
            3,
            "no answer yet",
            begun + timedelta(seconds=65),
        )
        at = json.loads(step.result or "")
        assert (at["number"], at["polls"], datetime.fromisoformat(at["began"])) == (1, 3, begun)
    assert await desk.steps([]) == {}
    with pytest.raises(ArgumentError, match="at most 500 jobs, got 501"):
        await desk.steps(f"01890000-0000-7000-8000-{number:012}" for number in range(501))


async def test_d5_a_poll_that_ends_in_an_error_is_counted(app: App, box: Sandbox) -> None:
    ca = Authority(box, Pending(), Permanent("denied"), "issued")

    @app.job
    async def issue(ctx: Context) -> str:
        return await ctx.poll("issued", ca.status, 7, jitter=STEADY)

    handle = await issue.enqueue()
    await box.drain(travel=True)
    desk = await app.desk("me")
    detail = await desk.job(handle.id)
    assert detail.job.state is JobState.DEAD
    assert [(step.tries, step.note) for step in detail.steps] == [(2, "denied")]
    await desk.requeue(handle.id)
    await box.drain()
    assert (await box.job(handle)).result == '"issued 7"'
    assert [step.tries for step in (await desk.job(handle.id)).steps] == [3]


@pytest.mark.parametrize(
    ("header", "second"), [("40", 40), ("Thu, 01 Jan 2026 00:01:30 GMT", 90), ("86400", 600)], ids=["s", "date", "day"]
)
async def test_d3_retry_after_is_honoured_within_the_round(app: App, box: Sandbox, header: str, second: int) -> None:
    ca = Authority(box, Refusal(429, **{"Retry-After": header}), "issued")

    @app.job
    async def issue(ctx: Context) -> None:
        await ctx.poll("issued", ca.status, 7)

    await issue.enqueue()
    await box.drain(travel=True)
    assert ca.asked == [0, second]


async def test_d11_an_authority_that_answers_429_for_ever_gets_seven_or_eight_requests_in_ten_minutes(
    app: App, box: Sandbox
) -> None:
    ca = Authority(box, Refusal(429))

    @app.job
    async def issue(ctx: Context) -> None:
        await ctx.poll("issued", ca.status, 7)

    await issue.enqueue()
    await box.drain(travel="10m")
    assert 7 <= len(ca.asked) <= 8


@pytest.mark.parametrize("is_checked", [False, True], ids=["raised", "checked"])
@pytest.mark.parametrize("header", ["0", "1", "Thu, 01 Jan 1970 00:00:00 GMT"], ids=["0s", "1s", "past"])
async def test_d11_an_authority_that_asks_for_haste_and_is_never_ready_is_asked_no_more_often(
    app: App, box: Sandbox, header: str, *, is_checked: bool
) -> None:
    """A Retry-After can only lengthen the waits of the table, also if `HttpTriage.check` has raised the verdict."""
    refusal = Refusal(429, **{"Retry-After": header})
    verdict = HttpTriage(polling=True)(refusal)
    assert isinstance(verdict, Pending)
    ca = Authority(box, verdict if is_checked else refusal)

    @app.job
    async def issue(ctx: Context) -> None:
        await ctx.poll("issued", ca.status, 7, jitter=STEADY)

    await issue.enqueue()
    await box.drain(travel="10m")
    assert ca.asked == D4


async def test_d3_a_retry_after_beyond_the_end_of_a_round_puts_off_the_next_one(app: App, box: Sandbox) -> None:
    ca = Authority(box, Refusal(429, **{"Retry-After": "3600"}))

    @app.job
    async def issue(ctx: Context) -> None:
        await ctx.poll("issued", ca.status, 7)

    await issue.enqueue()
    await box.drain(travel="3h")
    assert ca.asked == [0, 600, 4_200, 4_800, 8_400, 9_000]


async def test_the_wait_that_the_function_names_is_taken_as_it_is(app: App, box: Sandbox) -> None:
    """One that is no wait at all is none: a function that is never ready must not be called without a pause."""
    ca = Authority(box, Pending("2s"), Pending("0s"), Pending("1m"), "issued")

    @app.job
    async def issue(ctx: Context) -> None:
        await ctx.poll("issued", ca.status, 7, jitter=STEADY)

    await issue.enqueue()
    await box.drain(travel=True)
    assert ca.asked == [0, 2, 17, 77]


async def test_d5_a_wait_holds_no_worker_and_its_count_survives_a_restart(app: App, engine_url: str) -> None:
    """Each look is made by another sandbox, which knows nothing of those before it."""
    begun = datetime(2026, 1, 1, tzinfo=UTC)
    asked: list[float] = []
    handle: Any = None
    for second in D4:
        async with Sandbox(app, url=engine_url, start=begun + timedelta(seconds=second)) as box:
            if handle is None:

                @app.job
                async def issue(ctx: Context) -> None:
                    await ctx.poll("issued", look, jitter=STEADY)

                def look() -> None:
                    asked.append((box.now - begun).total_seconds())
                    raise Pending

                handle = await issue.enqueue()
            drained = await box.drain()
            assert (drained.attempts, drained.waiting) == (1, 1)
            [step] = (await (await app.desk("me")).job(handle.id)).steps
            assert step.tries == len(asked)
    assert asked == D4


async def test_d5_the_first_wait_of_five_seconds_holds_no_worker_either(real_time_store: Store) -> None:
    """A worker with one slot takes the next order while the first one waits for its second poll."""
    app = App("sqlite:///unused.db")

    @app.job
    async def greet(ctx: Context, name: str) -> None:
        await ctx.poll("issued", never, jitter=STEADY)

    async def never() -> None:
        polled.append(asyncio.get_running_loop().time())
        raise Pending

    polled: list[float] = []
    async with at_work(real_time_store, app, concurrency=1):
        orders = [await enqueue(real_time_store) for _ in range(3)]
        views = [await seen(real_time_store, order, JobState.WAITING) for order in orders]
    assert {view.reason for view in views} == {"still pending: issued, poll 1: no answer yet"}
    assert polled[2] - polled[0] < 4


async def test_a_sync_handler_polls_as_well(app: App, box: Sandbox) -> None:
    ca = Authority(box, Pending(), "issued")

    @app.job
    def issue(ctx: SyncContext) -> str:
        return ctx.poll("issued", ca.status_now, 7, jitter=STEADY)

    handle = await issue.enqueue()
    await box.drain(travel=True)
    assert (ca.asked, await handle.result()) == ([0, 5], "issued 7")


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"within": "0s"}, "within"),
        ({"within": "soon"}, "within"),
        ({"then": "stop"}, "then"),
        ({"every": 5}, "every"),
        ({"jitter": 0.2}, "jitter"),
        ({"deadline": datetime(2026, 1, 1)}, "deadline"),  # noqa: DTZ001 - that is what is refused
    ],
)
async def test_a_plan_that_makes_no_sense_is_refused_by_name(app: App, options: dict[str, Any], field: str) -> None:
    refused: list[str] = []

    @app.job
    async def issue(ctx: Context) -> None:
        with pytest.raises(ArgumentError) as error:
            ctx.poll("issued", len, "abc", **options)
        refused.append(error.value.field)

    async with Sandbox(app) as box:
        await issue.enqueue()
        await box.drain(raising=True)
    assert refused == [field]
