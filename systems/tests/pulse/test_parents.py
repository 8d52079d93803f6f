"""Parents that are deleted (C6, C7) or end (C8), and what becomes of their children."""

from __future__ import annotations

import asyncio

import pytest
from structlog.typing import EventDict
from systems.tests.pulse.support import at_work, children_of, found, ingest_only, put, seen, view_of
from tests.support.waiting import until

from perdure import Desk, JobState, JobView, NotFoundError
from perdure.testing import Sandbox
from perdure_systems.pulse import jobs, operations
from perdure_systems.pulse.jobs import app
from perdure_systems.pulse.log_lines import public_id
from perdure_systems.pulse.standins import ModelStandin


async def desk() -> Desk:
    return await app.desk("ops")


async def is_gone(job_id: str) -> bool:
    try:
        await view_of(job_id)
    except NotFoundError:
        return True
    return False


async def test_c6_a_deleted_parent_cancels_its_active_children_and_leaves_the_finished_ones(
    box: Sandbox, standin: ModelStandin
) -> None:
    """One child is done, one runs, one waits for the model, two are queued."""
    standin.next_answers.extend([200, 202])
    submitted = await put(5)
    async with at_work(PULSE_WORKERS="1"):
        parent = await seen(submitted.job_id, "waiting")
        await until(lambda: len(standin.asked) >= 2)
        standin.open.clear()
        await until(lambda: len(standin.asked) >= 3)
        children = await children_of(parent.id)
        assert [child.state for child in children[:3]] == ["succeeded", "waiting", "running"]
        await operations.delete(await desk(), public_id(parent.id))
        assert await is_gone(parent.id)
        ends = [await seen(child.id) for child in children]
        standin.open.set()
    assert ends[0].state is JobState.SUCCEEDED
    assert {(end.state.value, end.reason) for end in ends[1:]} == {("cancelled", "cancelled: parent job deleted")}
    assert (await view_of(children[2].id)).result is None, "the late answer of the running child is ignored"
    del box


@pytest.mark.parametrize("through", ["desk", "api"])
async def test_c7_a_parent_deleted_while_it_runs_cannot_enqueue_children(
    box: Sandbox, standin: ModelStandin, logged: list[EventDict], monkeypatch: pytest.MonkeyPatch, through: str
) -> None:
    """The desk deletes the job alone; the API deletes its document, too."""
    began, go_on = asyncio.Event(), asyncio.Event()
    split = jobs.split_document

    async def split_slowly(document: str) -> int:
        began.set()
        await go_on.wait()
        return await split(document)

    monkeypatch.setattr(jobs, "split_document", split_slowly)
    submitted = await put(3)
    async with at_work() as worker:
        await asyncio.wait_for(began.wait(), 30)
        if through == "api":
            await operations.delete(await desk(), public_id(submitted.job_id))
        else:
            await (await desk()).delete(submitted.job_id)
        go_on.set()
        await until(lambda: worker.running == 0)
    line = f"꩜ No children enqueued: parent job deleted during execution | job:{public_id(submitted.job_id)}"
    assert line in [entry["event"] for entry in logged]
    assert standin.asked == []
    assert await is_gone(submitted.job_id)
    assert (await (await desk()).count()).jobs == 0
    del box


@pytest.mark.parametrize(
    ("engine_url", "on_end"),
    [("sqlite", "cancel"), ("postgres", "cancel"), ("sqlite", "keep")],
    indirect=["engine_url"],
)
async def test_c8_children_are_cancelled_or_kept_when_their_parent_ends(
    box: Sandbox, standin: ModelStandin, monkeypatch: pytest.MonkeyPatch, on_end: str
) -> None:
    """The parent's time is up with one child done, one running, one waiting, one paused and one queued."""
    monkeypatch.setenv("PULSE_AGGREGATE_WITHIN", "1h")
    monkeypatch.setenv("PULSE_CHILDREN_ON_END", on_end)
    standin.next_answers.extend([200, 202, 429])
    standin.retry_after = 100_000
    submitted = await put(5)
    async with at_work(PULSE_WORKERS="1") as worker:
        await seen(submitted.job_id, "waiting")
        await until(lambda: len(standin.asked) >= 3)
        standin.open.clear()
        await until(lambda: len(standin.asked) >= 4)
        children = await children_of(submitted.job_id)
        before = [child.state.value for child in children]
        assert before == ["succeeded", "waiting", "paused", "running", "ready"]
        await _let_the_time_pass(box, submitted.job_id)
        second = await app.worker()  # the slot of the first one is taken
        running = asyncio.create_task(second.run())
        parent = await seen(submitted.job_id)
        assert (parent.state, parent.value["failed"]) == (JobState.SUCCEEDED, 4)
        if on_end == "cancel":
            ends = [await seen(child.id) for child in children]
            assert ends[0].state is JobState.SUCCEEDED
            assert {(end.state.value, end.reason) for end in ends[1:]} == {
                ("cancelled", "cancelled: parent job completed")
            }
        standin.open.set()
        if on_end == "keep":
            assert (await seen(children[3].id)).state is JobState.SUCCEEDED
            assert (await seen(children[4].id)).state is JobState.SUCCEEDED
        second.hurry()
        await asyncio.wait_for(running, 30)
        await until(lambda: worker.running == 0)
    late = await view_of(children[3].id)
    assert (late.state.value, late.result is None) == (
        ("cancelled", True) if on_end == "cancel" else ("succeeded", False)
    ), "the late answer of a cancelled child is ignored"


async def _let_the_time_pass(box: Sandbox, job_id: str) -> None:
    """Move the clock by an hour, and wait until the parent is ready again."""
    box.travel("1h")

    async def look() -> JobView | None:
        view = await view_of(job_id)
        return view if view.state is not JobState.WAITING else None

    await found(look)


@pytest.mark.parametrize(("on_end", "words"), [("cancel", "cancelled: parent job died"), ("keep", "")])
async def test_c8_the_children_of_a_parent_that_fails_are_reported_so(
    box: Sandbox, monkeypatch: pytest.MonkeyPatch, on_end: str, words: str
) -> None:
    """The words tell how the parent has ended: completed, died or cancelled."""
    monkeypatch.setenv("PULSE_AGGREGATE_WITHIN", "1h")
    monkeypatch.setenv("PULSE_CHILDREN_ON_END", on_end)
    submitted = await put(2)
    await ingest_only(box)
    await (await desk()).holds.pause(kind="pulse.analyse")
    box.travel("1h")
    await box.drain()
    assert (await view_of(submitted.job_id)).state is JobState.DEAD
    children = await children_of(submitted.job_id)
    assert [child.reason if child.state is JobState.CANCELLED else "" for child in children] == [words] * 2


async def test_c8_the_children_of_a_parent_that_is_cancelled_are_reported_so(
    box: Sandbox, standin: ModelStandin
) -> None:
    submitted = await put(3)
    await ingest_only(box)
    await operations.cancel(await desk(), public_id(submitted.job_id))
    await box.drain()
    assert (await view_of(submitted.job_id)).state is JobState.CANCELLED
    children = await children_of(submitted.job_id)
    assert {child.reason for child in children} == {"cancelled: parent job cancelled"}
    assert standin.asked == []
