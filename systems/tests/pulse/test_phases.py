"""Two-phase jobs (C5): ingest creates children, aggregate joins what they found, and no worker is held meanwhile."""

from __future__ import annotations

import pytest
from structlog.typing import EventDict
from systems.tests.pulse.support import (
    PRICE_OF_A_PIECE,
    SQLITE,
    at_work,
    children_of,
    ingest_only,
    put,
    seen,
    text_of,
    view_of,
)
from tests.support.builders.jobs import employ
from tests.support.databases.behind import query
from tests.support.waiting import until

from perdure import JobState
from perdure.domain.flows.flow import StepKind, StepRecord, StepState, StepWrite
from perdure.domain.jobs.transition import released
from perdure.storage.records import Wanted
from perdure.testing import Sandbox
from perdure_systems.pulse.jobs import app, records
from perdure_systems.pulse.log_lines import public_id
from perdure_systems.pulse.standins import ModelStandin


async def test_c5_ingest_creates_a_child_for_each_piece_and_aggregate_joins_them(
    box: Sandbox, standin: ModelStandin
) -> None:
    submitted = await put(3)
    drained = await box.drain()
    view = await box.job(submitted.job_id)
    children = await children_of(submitted.job_id)
    assert (drained.succeeded, drained.attempts) == (4, 5), "the parent runs twice: ingest, and aggregate"
    assert [(child.kind, child.parent, child.state) for child in children] == [
        ("pulse.analyse", submitted.job_id, JobState.SUCCEEDED)
    ] * 3
    assert standin.asked == text_of(3).split("\n\n"), "each piece was asked for once, oldest first"
    result = await records.result(view.arguments["document"])
    assert result is not None
    assert result.summary == " ".join(f"Piece {number:03} speaks of engines." for number in range(3))
    assert (result.chunks, result.failed) == (3, 0)
    assert result.cost == pytest.approx(3 * PRICE_OF_A_PIECE)
    assert {"engines", "piece", "speaks"} <= set(result.topics)
    assert view.value["cost"] == result.cost


async def test_c5_aggregate_waits_until_all_children_are_final_and_holds_no_worker(
    box: Sandbox, standin: ModelStandin
) -> None:
    """A worker with one slot does it all; while the children are held up the parent takes no slot."""
    submitted = await put(3)
    standin.open.clear()
    async with at_work(PULSE_WORKERS="1") as worker:
        view = await seen(submitted.job_id, "waiting")
        await until(lambda: len(standin.asked) == 1)
        assert (view.reason, view.awaits, view.worker) == ("waiting for children", "family:aggregate", None)
        assert worker.running == 1, "the one slot has a child"
        assert await records.result(view.arguments["document"]) is None
        standin.open.set()
        assert (await seen(submitted.job_id)).state is JobState.SUCCEEDED
    assert [child.state for child in await children_of(submitted.job_id)] == [JobState.SUCCEEDED] * 3
    del box


@SQLITE
async def test_c5_a_piece_that_fails_for_good_leaves_a_warning_and_the_rest_is_joined(
    box: Sandbox, standin: ModelStandin
) -> None:
    standin.next_answers.append(400)
    submitted = await put(3)
    await box.drain()
    view = await box.job(submitted.job_id)
    assert (view.state, view.warnings) == (JobState.SUCCEEDED, ("1 of 3 pieces could not be analysed",))
    assert (view.value["chunks"], view.value["failed"]) == (3, 1)


@SQLITE
async def test_c5_a_document_without_an_analysed_piece_has_failed(box: Sandbox, standin: ModelStandin) -> None:
    standin.next_answers.extend([400, 400])
    submitted = await put(2)
    await box.drain()
    view = await box.job(submitted.job_id)
    assert (view.state, view.word) == (JobState.DEAD, "failed")
    assert "none of the 2 pieces could be analysed" in (view.last_error or "")


async def test_c5_a_recovered_parent_with_children_stays_in_aggregate_and_is_logged_with_their_number(
    box: Sandbox, standin: ModelStandin, logged: list[EventDict]
) -> None:
    submitted = await put(3)
    await ingest_only(box)
    view = await box.job(submitted.job_id)
    assert view.awaits == "family:aggregate"
    await (await app.desk("test")).run_now(submitted.job_id)
    await box.drain()
    assert (await box.job(submitted.job_id)).state is JobState.SUCCEEDED
    assert len(standin.asked) == 3, "the children were not made again"
    line = "✿ Recovered parent stays in aggregate: its children are there, 3 found | job:"
    assert [entry["event"] for entry in logged if "Recovered" in entry["event"]] == [line + public_id(submitted.job_id)]


async def test_c5_a_recovered_parent_without_children_goes_back_to_ingest_and_is_logged(
    box: Sandbox, standin: ModelStandin, logged: list[EventDict]
) -> None:
    """Its process died when it had written down that it makes children, and before it made them."""
    submitted = await put(2)
    store = await app.store()
    [claim] = await store.claim(await employ(store, queues=("pulse",)), [Wanted("pulse", 1)])
    begun = StepRecord(key="aggregate", kind=StepKind.FAMILY, state=StepState.BEGUN, tries=1, begun_at=box.now)
    assert await store.save_steps([StepWrite(claim, begun)]) == [True]
    await store.acknowledge([released(claim)])
    await box.drain()
    assert (await box.job(submitted.job_id)).state is JobState.SUCCEEDED
    assert len(standin.asked) == 2
    line = f"✿ Recovered parent back to ingest: it has no children | job:{public_id(submitted.job_id)}"
    assert line in [entry["event"] for entry in logged]


async def test_c5_a_recovered_parent_whose_children_cannot_be_read_goes_back_to_ingest_and_is_logged(
    box: Sandbox, engine_url: str, standin: ModelStandin, logged: list[EventDict]
) -> None:
    submitted = await put(2)
    await ingest_only(box)
    query(engine_url, "DELETE FROM {child}")
    query(engine_url, "UPDATE {family} SET succeeded = 2")
    await (await app.desk("test")).run_now(submitted.job_id)
    await box.drain()
    assert (await box.job(submitted.job_id)).state is JobState.SUCCEEDED
    line = f"✿ Recovered parent back to ingest: its children cannot be read | job:{public_id(submitted.job_id)}"
    assert line in [entry["event"] for entry in logged]


async def test_c5_a_recovered_job_of_one_phase_is_untouched(
    box: Sandbox, standin: ModelStandin, logged: list[EventDict]
) -> None:
    """It goes on at its checkpoint, and no decision is logged."""
    submitted = await put(5, handler="index")
    store = await app.store()
    worker_id = await employ(store, queues=("pulse",))
    [claim] = await store.claim(worker_id, [Wanted("pulse", 1)])
    assert await store.checkpoint(claim, "3")
    await store.retire(worker_id)
    async with at_work():
        view = await seen(submitted.job_id)
    assert (view.state, view.value, view.crashes, view.failures) == (JobState.SUCCEEDED, 5, 1, 0)
    assert standin.asked == text_of(5).split("\n\n")[3:]
    assert [entry["event"] for entry in logged if "Recovered" in entry["event"]] == []
    assert (await view_of(submitted.job_id)).parent is None
    del box
