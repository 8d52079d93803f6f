"""G5 with steps: those taken before `ctx.transaction()` are kept apart, those taken after it commit with the writes."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.programs.effects import TWICE, at_work, insertion, write, written

from perdure import App, Backoff, ConflictError, Context, Job, Retry
from perdure.domain.flows.flow import StepState

ONCE = Retry(attempts=1, backoff=Backoff.none())
MODES = ["task", "thread"]


def a_payer(app: App, url: str, mode: str, calls: list[str], fail: Any = None) -> Job[[], str]:
    """A job with a step before its transaction and one inside, which does what `fail` says before it returns."""

    def called(name: str) -> str:
        calls.append(name)
        return f"{name} {calls.count(name)}"

    async def charge(connection: Any) -> str:
        text = called("inside")
        await write(connection, insertion(url, text))
        return text

    def charge_now(connection: Any) -> str:
        text = called("inside")
        connection.execute(insertion(url, text))
        return text

    async def in_task(ctx: Context) -> str:
        before = await ctx.step("before", called, "before")
        async with ctx.transaction() as connection:
            inside = await ctx.step("inside", charge, connection)
        if fail is not None:
            fail(ctx)
        return f"{before}, {inside}"

    def in_thread(ctx: Any) -> str:
        before = ctx.step("before", called, "before")
        with ctx.transaction() as connection:
            inside = ctx.step("inside", charge_now, connection)
        if fail is not None:
            fail(ctx)
        return f"{before}, {inside}"

    declared: Job[[], str] = app.job(name="payer", retry=TWICE)(in_task if mode == "task" else in_thread)
    return declared


async def kept(app: App, job_id: str) -> dict[str, tuple[StepState, str | None]]:
    """The job's steps."""
    detail = await (await app.desk("me")).job(job_id)
    return {step.key: (step.state, step.result) for step in detail.steps}


@pytest.mark.parametrize("mode", MODES)
async def test_g5_a_step_inside_commits_with_the_writes_and_the_acknowledgement(app: App, url: str, mode: str) -> None:
    calls: list[str] = []
    seen: list[list[str]] = []
    job = a_payer(app, url, mode, calls, lambda _: seen.append(written(url)))
    async with at_work(app):
        handle = await job.enqueue()
        assert await handle.result(timeout="20s") == "before 1, inside 1"
    assert (calls, written(url)) == (["before", "inside"], ["inside 1"])
    assert await kept(app, handle.id) == {
        "before": (StepState.DONE, '"before 1"'),
        "inside": (StepState.DONE, '"inside 1"'),
    }
    assert seen == [[]], "no other connection sees it before the commit"


@pytest.mark.parametrize("mode", MODES)
async def test_g5_a_step_inside_is_undone_with_the_writes_and_one_before_is_not(app: App, url: str, mode: str) -> None:
    calls: list[str] = []

    def fail(ctx: Context) -> None:
        if ctx.attempt == 1:
            raise OSError("the network is gone")

    job = a_payer(app, url, mode, calls, fail)
    async with at_work(app):
        handle = await job.enqueue()
        assert await handle.result(timeout="20s") == "before 1, inside 2"
    assert calls == ["before", "inside", "inside"]
    assert written(url) == ["inside 2"]
    assert await kept(app, handle.id) == {
        "before": (StepState.DONE, '"before 1"'),
        "inside": (StepState.DONE, '"inside 2"'),
    }


async def test_g5_a_step_whose_function_opens_the_transaction_commits_with_it(app: App, url: str) -> None:
    """It fails once after the step: were the step kept apart, its write would be missing."""
    attempts: list[int] = []

    @app.job(retry=TWICE)
    async def pay(ctx: Context) -> None:
        async def charge() -> str:
            async with ctx.transaction() as connection:
                await write(connection, insertion(url, f"charge {ctx.attempt}"))
            return "charged"

        await ctx.step("charge", charge)
        attempts.append(ctx.attempt)
        if ctx.attempt == 1:
            raise OSError("the network is gone")

    async with at_work(app):
        handle = await pay.enqueue()
        await handle.result(timeout="20s")
    assert (attempts, written(url)) == ([1, 2], ["charge 2"])
    assert await kept(app, handle.id) == {"charge": (StepState.DONE, '"charged"')}


async def test_g5_a_step_that_fails_in_a_transaction_has_one_try(app: App, url: str) -> None:
    """Its tries would be undone with the transaction, and made again for ever."""
    tries: list[int] = []

    @app.job(retry=TWICE)
    async def pay(ctx: Context) -> None:
        async def charge() -> None:
            async with ctx.transaction() as connection:
                await write(connection, insertion(url, "charge"))
            tries.append(ctx.attempt)
            raise OSError("the network is gone")

        await ctx.step("charge", charge, optional=True, retry=TWICE)

    async with at_work(app):
        handle = await pay.enqueue()
        with pytest.raises(Exception, match="the network is gone"):
            await handle.result(timeout="20s")
    assert (tries, written(url), await kept(app, handle.id)) == ([1, 2], [], {})


async def test_g5_retries_and_waits_are_refused_once_a_transaction_is_open(app: App, url: str) -> None:
    refused: list[str] = []

    @app.job
    async def pay(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await write(connection, insertion(url, "row"))
            calls: list[Any] = [
                lambda: ctx.step("a", len, "abc", retry=TWICE),
                lambda: ctx.step("b", len, "abc", optional=True),
                lambda: ctx.sleep("1h"),
                lambda: ctx.wait_for("x"),
                lambda: ctx.poll("c", len, "abc"),
                lambda: ctx.gather([]),
            ]
            for call in calls:
                with pytest.raises(ConflictError) as error:
                    await call()
                refused.append(str(error.value))

    async with at_work(app):
        await (await pay.enqueue()).result(timeout="20s")
    assert len(refused) == 6
    assert all("after ctx.transaction()" in text for text in refused)
    assert written(url) == ["row"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fails", [False, True])
async def test_log_lines_of_a_transaction_are_stored_without_waiting(
    app: App, url: str, mode: str, fails: bool
) -> None:
    """On SQLite no other connection can write: lines are committed with the rest, or written once it is undone."""

    def begin(ctx: Context) -> None:
        ctx.log.info("before")
        ctx.progress(1, 2)

    def end(ctx: Context) -> None:
        ctx.log.info("inside", size=3)
        ctx.progress(2, 2)
        if fails:
            raise OSError("the network is gone")

    async def in_task(ctx: Context) -> None:
        begin(ctx)
        async with ctx.transaction() as connection:
            await write(connection, insertion(url, "row"))
        end(ctx)

    def in_thread(ctx: Context) -> None:
        begin(ctx)
        with ctx.transaction() as connection:
            connection.execute(insertion(url, "row"))
        end(ctx)

    job: Job[[], None] = app.job(name="talker", retry=ONCE)(in_task if mode == "task" else in_thread)
    async with at_work(app):
        handle = await job.enqueue()
        if fails:
            with pytest.raises(Exception, match="the network is gone"):
                await handle.result(timeout="10s")
        else:
            await handle.result(timeout="10s")
    lines = (await (await app.desk("me")).job(handle.id)).lines
    assert [line.text for line in lines] == ["before", "inside size=3"]
    assert written(url) == ([] if fails else ["row"])
