"""How far an attempt has come is kept, fenced, and found by the next one, wherever the handler runs."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from tests.support.builders.jobs import apply, enqueue, show
from tests.support.programs.checkpoint_jobs import MODES, STEPS, app
from tests.support.waiting import text_of, until
from tests.support.working import at_work, found, seen

from perdure import App, ConflictError, Context, JobState, PayloadError, StoreRefused, StoreUnavailable
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import Reason
from perdure.domain.jobs.transition import paused
from perdure.events import HandlerStuck, StaleWrites, StoreTrouble
from perdure.storage.port import Store
from perdure.testing import Sandbox
from perdure.worker.attempt.checkpoints import CURSOR_LIMIT_BYTES


def arguments(folder: Path, manner: str) -> str:
    return msgspec.json.encode({"folder": str(folder), "manner": manner}).decode()


def has_noted(folder: Path, steps: int) -> bool:
    return len(notes(folder)) == steps


def notes(folder: Path) -> list[str]:
    return text_of(folder / "notes").splitlines()


@pytest.mark.parametrize("mode", MODES)
async def test_g9_the_next_attempt_goes_on_from_the_last_checkpoint(
    real_time_store: Store, tmp_path: Path, mode: str
) -> None:
    async with at_work(real_time_store, app):
        job_id = await enqueue(real_time_store, kind=mode, args=arguments(tmp_path, "stumble"))
        view = await seen(real_time_store, job_id)
    assert (view.state, view.failures, view.result) == (JobState.SUCCEEDED, 2, str(STEPS))
    assert notes(tmp_path) == [str(step) for step in range(STEPS)], "no step was taken twice"


@pytest.mark.parametrize("mode", MODES)
async def test_g9_a_job_that_goes_back_at_closing_keeps_its_checkpoint(
    real_time_store: Store, tmp_path: Path, mode: str
) -> None:
    job_id = await enqueue(real_time_store, kind=mode, args=arguments(tmp_path, "leave"))
    for steps in range(1, STEPS + 1):
        async with at_work(real_time_store, app, stop_timeout="30s"):
            await until(partial(has_noted, tmp_path, steps))
        view = await show(real_time_store, job_id)
        assert (view.state, view.cursor, view.failures, view.crashes) == (JobState.READY, str(steps), 0, 0)
    assert notes(tmp_path) == [str(step) for step in range(STEPS)], "no step was taken twice"


@pytest.mark.parametrize("mode", MODES)
async def test_g3_an_attempt_that_has_lost_its_claim_learns_it_and_writes_nothing(
    real_time_store: Store, tmp_path: Path, mode: str
) -> None:
    async with at_work(real_time_store, app, grace="5s") as shift:
        job_id = await enqueue(real_time_store, kind=mode, args=arguments(tmp_path, "be robbed"))
        await until(lambda: "waiting" in notes(tmp_path))
        [running] = shift.worker._parts.attempts.executor.running
        await take_away(real_time_store, running.claim)
        (tmp_path / "robbed").touch()
        await until(lambda: not shift.worker.running)
        view = await show(real_time_store, job_id)
        assert (view.state, view.cursor, view.failures) == (JobState.PAUSED, "1", 0)
        assert shift.told(StaleWrites) == []
        assert shift.told(HandlerStuck) == []
    last = notes(tmp_path)[-1]
    assert "has lost its claim" in last or last == "AttemptInterrupted"


async def take_away(store: Store, claim: Claim) -> None:
    """End a claim behind its worker's back, and keep the job from being claimed again."""
    await apply(store, paused(claim, Reason.PAUSED, None))


BAD: list[Any] = [object(), {1: {object()}}, "x" * CURSOR_LIMIT_BYTES, "\ud800"]


@pytest.mark.parametrize("cursor", BAD, ids=["object", "nested", "large", "surrogate"])
async def test_a_cursor_that_cannot_be_kept_is_refused_by_name(real_time_store: Store, cursor: object) -> None:
    app = App("sqlite:///unused.db")
    refusals: list[PayloadError] = []

    @app.job
    async def greet(ctx: Context, name: str) -> None:
        await ctx.checkpoint(name)
        with pytest.raises(PayloadError) as refusal:
            await ctx.checkpoint(cursor)
        refusals.append(refusal.value)
        assert ctx.cursor == name

    async with at_work(real_time_store, app):
        job_id = await enqueue(real_time_store)
        view = await seen(real_time_store, job_id)
    assert (view.state, [refusal.field for refusal in refusals]) == (JobState.SUCCEEDED, ["cursor"])


@dataclass
class Place:
    """Where a walk stands."""

    page: int
    seen: list[str]


async def test_a_cursor_is_read_back_as_plain_data_or_as_its_type(real_time_store: Store) -> None:
    app = App("sqlite:///unused.db")
    found: list[object] = []

    @app.job
    async def greet(ctx: Context, name: str) -> None:
        found.extend((ctx.cursor, ctx.read_cursor(Place)))
        await ctx.checkpoint(Place(3, [name]))
        found.extend((ctx.cursor, ctx.read_cursor(Place)))
        with pytest.raises(PayloadError, match="cursor is not of type int"):
            ctx.read_cursor(int)
        await ctx.checkpoint(None)
        found.append(ctx.cursor)

    async with at_work(real_time_store, app):
        job_id = await enqueue(real_time_store)
        view = await seen(real_time_store, job_id)
    assert view.state is JobState.SUCCEEDED
    assert found == [None, None, {"page": 3, "seen": ["Ada"]}, Place(3, ["Ada"]), None]


async def test_what_a_transaction_may_undo_is_not_checkpointed(real_time_store: Store) -> None:
    """The next attempt would believe that it was done."""
    app = App("sqlite:///unused.db")
    refused: list[bool] = []

    @app.job
    async def greet(ctx: Context, name: str) -> None:
        async with ctx.transaction():
            with pytest.raises(ConflictError, match=r"after ctx.transaction\(\)"):
                ctx.checkpoint(name)
            refused.append(True)

    async with at_work(real_time_store, app):
        view = await seen(real_time_store, await enqueue(real_time_store))
    assert (view.state, refused, view.cursor) == (JobState.SUCCEEDED, [True], None)


async def test_the_form_of_the_other_kind_of_handler_is_refused(real_time_store: Store) -> None:
    app = App("sqlite:///unused.db")
    refused: list[str] = []

    @app.job
    async def greet(ctx: Context, name: str) -> None:
        with pytest.raises(ConflictError, match="write `await") as refusal:
            bool(ctx.wait_closing(math.pi))
        refused.append(f"{name}: {refusal.value}")

    async with at_work(real_time_store, app):
        view = await seen(real_time_store, await enqueue(real_time_store))
    assert (view.state, len(refused)) == (JobState.SUCCEEDED, 1)


class Moody:
    """A store whose checkpoints fail or wait as the test wants."""

    def __init__(self, store: Store, *troubles: Exception) -> None:
        self._store = store
        self._troubles = list(troubles)
        self.asked = asyncio.Event()
        self.go_on = asyncio.Event()
        self.go_on.set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def checkpoint(self, claim: Claim, cursor: str | None) -> bool:
        self.asked.set()
        await self.go_on.wait()
        if self._troubles:
            raise self._troubles.pop(0)
        return await self._store.checkpoint(claim, cursor)


async def checkpointing(store: Store, moody: Moody, **settings: Any) -> JobId:
    """Run a job that checkpoints once and then sleeps; its id."""
    app = App("sqlite:///unused.db")

    @app.job
    async def greet(ctx: Context, name: str) -> None:
        await ctx.checkpoint(name)
        await asyncio.sleep(60)

    async with at_work(cast("Store", moody), app, **settings) as shift:
        job_id = await enqueue(store)
        await asyncio.wait_for(moody.asked.wait(), 30)
        if moody.go_on.is_set():
            await until(lambda: shift.told(StoreTrouble))
            await found(lambda: kept(store, job_id))
        else:
            shift.worker.stop()
            await until(lambda: next(iter(shift.worker._parts.attempts.executor.running)).stop)
            moody.go_on.set()
    return job_id


async def kept(store: Store, job_id: JobId) -> str | None:
    return (await show(store, job_id)).cursor


@pytest.mark.parametrize("trouble", [StoreUnavailable("away"), StoreRefused("full")], ids=["away", "full"])
async def test_a_handler_waits_while_the_database_takes_no_checkpoint(
    real_time_store: Store, trouble: Exception
) -> None:
    job_id = await checkpointing(real_time_store, Moody(real_time_store, trouble))
    view = await show(real_time_store, job_id)
    assert (view.cursor, view.failures, view.state) == ('"Ada"', 0, JobState.READY)


async def test_g9_a_checkpoint_under_way_is_written_even_if_its_attempt_must_stop(real_time_store: Store) -> None:
    """What it says is done, and would be done again."""
    moody = Moody(real_time_store)
    moody.go_on.clear()
    job_id = await checkpointing(real_time_store, moody, grace="10s", stop_timeout="1s")
    view = await show(real_time_store, job_id)
    assert (view.cursor, view.state, view.reason) == ('"Ada"', JobState.READY, "released")


@pytest.mark.parametrize("mode", MODES)
async def test_handlers_checkpoint_in_a_sandbox_too(tmp_path: Path, mode: str) -> None:
    async with Sandbox(app) as box:
        await app.job_named(mode).enqueue(str(tmp_path), "walk")
        [job] = (await box.drain()).jobs
    assert (job.state, job.cursor, notes(tmp_path)) == (JobState.SUCCEEDED, str(STEPS), ["0", "1", "2", "3"])


@pytest.mark.parametrize("mode", MODES)
def test_handlers_checkpoint_in_a_sandbox_without_an_event_loop_too(tmp_path: Path, mode: str) -> None:
    """There the handler runs in the very thread that waits for it."""
    with Sandbox(app) as box:
        app.job_named(mode).enqueue_sync(str(tmp_path), "walk")
        [job] = box.drain_sync().jobs
    assert (job.state, notes(tmp_path)) == (JobState.SUCCEEDED, ["0", "1", "2", "3"])
