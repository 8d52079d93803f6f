"""What can be asked of children, and what cannot."""

from __future__ import annotations

from typing import Any

import pytest

from perdure import App, ArgumentError, Call, Context, Retry
from perdure.domain.flows.child_ids import child_ids
from perdure.domain.jobs.ids import as_job_id, new_job_id
from perdure.testing import Sandbox

ONCE = Retry(attempts=1)


@pytest.fixture
def app() -> App:
    return App("sqlite:///never-opened.db")


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        (
            lambda ctx, child: ctx.gather([child.call(1)], quorum=2),
            r"quorum must be from 1 to the number .*\(1\), got 2",
        ),
        (lambda ctx, child: ctx.gather([child.call(1)], quorum=0), "quorum must be from 1"),
        (lambda ctx, _: ctx.gather([], quorum=1), r"quorum must be from 1 .*\(0\)"),
        (lambda ctx, child: ctx.gather(child.call(1)), "calls must be a list of calls"),
        (lambda ctx, _: ctx.gather([1]), "calls must be calls such as job.call"),
        (lambda ctx, child: ctx.gather([child.call(1)], failures="ignore"), "failures must be 'raise' or 'collect'"),
        (lambda ctx, child: ctx.spawn([child.call(1)], on_end="stop"), "on_end must be 'cancel' or 'keep'"),
        (lambda ctx, child: ctx.gather([child.call(1)], within="soon"), "within"),
        (lambda ctx, child: ctx.gather([child.using(id=new_job_id()).call(1)]), "id of child cannot be set"),
        (lambda ctx, _: ctx.gather([foreign().call()]), "calls hold stranger, which another app"),
        (lambda ctx, child: ctx.gather([child.call(1)] * 100_001), "calls are 100,001, 100,000 are allowed"),
    ],
)
async def test_what_cannot_be_meant_is_refused_by_name(app: App, asked: Any, problem: str) -> None:
    @app.job(name="child")
    async def child(number: int) -> int:
        return number

    @app.job(retry=ONCE)
    async def parent(ctx: Context) -> None:
        await asked(ctx, child)

    async with Sandbox(app) as box:
        await parent.enqueue()
        with pytest.raises(ArgumentError, match=problem):
            await box.drain(raising=True)
        assert len(box.enqueued()) == 1


def foreign() -> Any:
    """A job of another app."""

    @App("sqlite:///never-opened.db").job
    async def stranger() -> None: ...

    return stranger


async def test_nothing_asked_for_is_there_at_once(app: App) -> None:
    @app.job
    async def parent(ctx: Context) -> list[int]:
        nothing: list[Call[int]] = []
        return await ctx.gather(nothing)

    async with Sandbox(app) as box:
        handle = await parent.enqueue()
        drained = await box.drain()
        assert (drained.attempts, drained.succeeded) == (1, 1)
        assert await handle.result() == []


async def test_a_sandbox_runs_a_parent_inline_with_its_children(app: App) -> None:
    @app.job
    async def double(number: int) -> int:
        return number * 2

    @app.job
    async def parent(ctx: Context) -> list[int]:
        return await ctx.gather(double.call(n) for n in range(3))

    async with Sandbox(app, inline=True):
        handle = await parent.enqueue()
        assert await handle.result() == [0, 2, 4]


def test_the_ids_of_children_follow_from_what_they_are() -> None:
    parent = new_job_id()
    ids = list(child_ids(parent, "gather", 1_000))
    assert ids == list(child_ids(parent, "gather", 1_000))
    assert [as_job_id(one) for one in ids] == sorted(set(ids))
    assert {one[:13] for one in ids} == {parent[:13]}
    assert not set(ids) & set(child_ids(parent, "gather#2", 1_000))
    assert not set(ids) & set(child_ids(new_job_id(), "gather", 1_000))
