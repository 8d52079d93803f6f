"""G5 when the connection is cut at the commit, so that the worker cannot know whether it has happened."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.databases.behind import query, with_option
from tests.support.databases.proxy import Cut, in_between
from tests.support.programs.effects import TABLE, TWICE, at_work, insertion, make_table, write, written
from tests.support.waiting import until

from perdure import App, Context, Job, JobState, SyncContext

MARKED = f"{TABLE} (text) VALUES".encode()


@pytest.fixture
def schema(postgres_url: str) -> Iterator[str]:
    schema = f"t_{uuid.uuid4().hex[:16]}"
    yield schema
    query(postgres_url, f"DROP SCHEMA IF EXISTS {schema} CASCADE")


@pytest.mark.parametrize("mode", ["task", "thread"])
@pytest.mark.parametrize("cut", Cut)
async def test_g5_the_effect_happens_once_if_the_answer_to_the_commit_is_lost(
    postgres_url: str, schema: str, cut: Cut, mode: str
) -> None:
    """Cut after COMMIT: the late failure is stale and changes nothing. Cut before: the job runs again."""
    direct = with_option(postgres_url, "schema", schema)
    async with in_between(postgres_url, MARKED) as proxy, App(with_option(proxy.url, "schema", schema)) as app:
        make_table(direct)
        attempts: list[int] = []

        def begin(ctx: Context) -> str:
            if not attempts:
                proxy.order = cut
            attempts.append(ctx.attempt)
            return insertion(direct, f"attempt {len(attempts)}")

        async def in_task(ctx: Context) -> None:
            async with ctx.transaction() as connection:
                await write(connection, begin(ctx))

        def in_thread(ctx: Context) -> None:
            with ctx.transaction() as connection:
                connection.execute(begin(ctx))

        job: Job[[], None] = app.job(name="cut", retry=TWICE)(in_task if mode == "task" else in_thread)
        async with at_work(app) as worker:
            handle = await job.enqueue()
            await handle.result(timeout="30s")
            if cut is Cut.AFTER_COMMIT:
                await until(lambda: worker.stale_writes)
        assert proxy.cuts == 1
        view = await handle.view()
        assert view.state is JobState.SUCCEEDED
        if cut is Cut.AFTER_COMMIT:
            assert (len(attempts), view.failures, worker.stale_writes) == (1, 0, 1)
        else:
            assert (len(attempts), view.failures, worker.stale_writes) == (2, 1, 0)
        assert written(direct) == [f"attempt {len(attempts)}"]


@pytest.mark.parametrize("mode", ["task", "thread"])
@pytest.mark.parametrize("cut", Cut)
async def test_g5_with_steps_the_effect_happens_once_if_the_answer_to_the_commit_is_lost(
    postgres_url: str, schema: str, cut: Cut, mode: str
) -> None:
    """The step before is never taken again; the one inside is if, and only if, the commit has not happened."""
    direct = with_option(postgres_url, "schema", schema)
    async with in_between(postgres_url, MARKED) as proxy, App(with_option(proxy.url, "schema", schema)) as app:
        make_table(direct)
        before: list[int] = []
        inside: list[int] = []

        def prepare() -> int:
            before.append(1)
            return len(before)

        def begin() -> str:
            if not inside:
                proxy.order = cut
            inside.append(1)
            return insertion(direct, f"charge {len(inside)}")

        async def charge(connection: Any) -> int:
            await write(connection, begin())
            return len(inside)

        def charge_now(connection: Any) -> int:
            connection.execute(begin())
            return len(inside)

        async def in_task(ctx: Context) -> list[int]:
            prepared = await ctx.step("prepare", prepare)
            async with ctx.transaction() as connection:
                return [prepared, await ctx.step("charge", charge, connection)]

        def in_thread(ctx: SyncContext) -> list[int]:
            prepared = ctx.step("prepare", prepare)
            with ctx.transaction() as connection:
                return [prepared, ctx.step("charge", charge_now, connection)]

        job: Job[[], list[int]] = app.job(name="cut", retry=TWICE)(in_task if mode == "task" else in_thread)
        async with at_work(app) as worker:
            handle = await job.enqueue()
            times = 1 if cut is Cut.AFTER_COMMIT else 2
            assert await handle.result(timeout="30s") == [1, times]
            if cut is Cut.AFTER_COMMIT:
                await until(lambda: worker.stale_writes)
        assert (proxy.cuts, len(before), len(inside)) == (1, 1, times)
        assert written(direct) == [f"charge {times}"]
        view = await handle.view()
        assert (view.state, view.failures) == (JobState.SUCCEEDED, times - 1)
        steps = (await (await app.desk("me")).job(handle.id)).steps
        assert [(step.key, step.result) for step in steps] == [("prepare", "1"), ("charge", str(times))]
