"""Jobs as people know them (C12): six states, progress, cost, one of a source and handler, oldest first."""

from __future__ import annotations

import pytest
from starlette.responses import Response
from systems.tests.pulse.support import PRICE_OF_A_PIECE, SQLITE, children_of, ingest_only, put

from perdure import ArgumentError, Event, JobStarted, JobState
from perdure.testing import Sandbox
from perdure_systems.pulse.jobs import app
from perdure_systems.pulse.log_lines import public_id
from perdure_systems.pulse.operations import cancel, find, pause, resume
from perdure_systems.pulse.standins import ModelStandin
from perdure_systems.pulse.web.views import STATES, Shown, show_all, states_of


async def shown(job_id: str) -> Shown:
    desk = await app.desk("test")
    return (await show_all(desk, [await find(desk, public_id(job_id))]))[0]


def test_c12_there_are_six_states_and_each_state_of_the_engine_is_one_of_them() -> None:
    assert STATES == ("queued", "running", "paused", "completed", "failed", "cancelled")
    of = {word: states_of(word) for word in STATES}
    assert sorted(state for states in of.values() for state in states) == sorted(JobState)
    assert of["running"] == (JobState.RUNNING,)
    assert of["failed"] == (JobState.DEAD,)
    with pytest.raises(ArgumentError, match="state must be one of queued, running"):
        states_of("done")


@SQLITE
async def test_c12_a_job_goes_through_its_states(box: Sandbox, standin: ModelStandin) -> None:
    """Queued, paused, running (seen from inside the call), completed; others are cancelled and failed."""
    desk = await app.desk("ops")
    first = await put(1, "a.txt", "index")
    words = [(await shown(first.job_id)).state]
    await pause(desk, public_id(first.job_id))
    await box.drain(travel="2s")
    words.append((await shown(first.job_id)).state)
    await resume(desk, public_id(first.job_id))
    inside: list[JobState] = []
    answer = standin._refusal

    async def look_first(text: str, path: str) -> Response | None:
        inside.append((await box.job(first.job_id)).state)
        return await answer(text, path)

    standin._refusal = look_first  # type: ignore[method-assign]
    await box.drain()
    words.append(next(word for word in STATES if inside[0] in states_of(word)))
    words.append((await shown(first.job_id)).state)
    assert words == ["queued", "paused", "running", "completed"]
    standin.next_answers.append(400)
    failing, called_off = await put(1, "b.txt", "index"), await put(1, "c.txt", "index")
    await cancel(desk, public_id(called_off.job_id))
    await box.drain()
    assert (await shown(failing.job_id)).state == "failed"
    assert (await shown(called_off.job_id)).state == "cancelled"


async def test_c12_progress_is_current_of_total(box: Sandbox, standin: ModelStandin) -> None:
    submitted = await put(3)
    assert (await shown(submitted.job_id)).total is None
    await ingest_only(box)
    assert ((await shown(submitted.job_id)).current, (await shown(submitted.job_id)).total) == (0, 3)
    await box.drain(until=lambda: standin.answered == 2)
    assert ((await shown(submitted.job_id)).current, (await shown(submitted.job_id)).total) == (2, 3)
    await box.drain()
    done = await shown(submitted.job_id)
    assert (done.current, done.total, done.percent, done.phase) == (3, 3, 100, "aggregate")
    indexed = await put(4, handler="index")
    await box.drain()
    done = await shown(indexed.job_id)
    assert (done.current, done.total, done.phase) == (4, 4, None)


async def test_c12_cost_is_estimated_before_and_actual_after(box: Sandbox, standin: ModelStandin) -> None:
    standin.price = 0.02
    submitted = await put(2)
    await ingest_only(box)
    before = await shown(submitted.job_id)
    assert before.estimated == pytest.approx(2 * PRICE_OF_A_PIECE)
    assert before.actual == 0
    await box.drain()
    after = await shown(submitted.job_id)
    assert after.estimated == pytest.approx(2 * PRICE_OF_A_PIECE)
    assert after.actual == pytest.approx(4 * PRICE_OF_A_PIECE)
    [child, _] = await children_of(submitted.job_id)
    costs = (await (await app.desk("test")).job(child.id)).costs
    assert [cost.budget for cost in costs] == ["pulse.model"]
    assert costs[0].spent == pytest.approx(2 * PRICE_OF_A_PIECE)


async def test_c12_an_active_job_of_the_same_source_and_handler_is_found_and_not_made_again(
    box: Sandbox, standin: ModelStandin
) -> None:
    first = await put(2)
    same, other_handler, other_source = await put(2), await put(2, handler="topics"), await put(2, source="b.txt")
    assert (same.job_id, same.is_new) == (first.job_id, False)
    assert other_handler.is_new
    assert other_source.is_new
    await ingest_only(box)
    assert not (await put(2)).is_new, "a parent that waits for its children is active"
    await box.drain()
    again = await put(2)
    assert again.is_new, "one that is done is not"
    assert again.job_id != first.job_id
    assert len(standin.asked) == 6


@SQLITE
async def test_c12_the_oldest_job_runs_first(box: Sandbox) -> None:
    put_in = []
    for source in ("first.txt", "second.txt", "third.txt"):
        put_in.append((await put(1, source, "index")).job_id)
        box.travel("1s")
    started: list[str] = []

    def note(event: Event) -> None:
        if isinstance(event, JobStarted):
            started.append(event.job_id)

    forget = app.subscribe(note, JobStarted)
    await box.drain()
    forget()
    assert started == put_in
