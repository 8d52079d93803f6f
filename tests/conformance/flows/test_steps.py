"""FlowStore, steps: what a job has done is kept, in order, and never done again (E3)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests.support.builders.jobs import (
    A_FAILURE,
    DAY,
    HOSTILE,
    HOUR,
    MINUTE,
    apply,
    claim_one,
    claim_some,
    employ,
    enqueue,
    only,
    start,
)

from perdure.clock import ManualClock
from perdure.domain.flows.flow import StepKind, StepRecord, StepState, StepWrite
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import new_job_id
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import Reason
from perdure.domain.operate.audit import By
from perdure.errors import ArgumentError
from perdure.storage.port import Store
from perdure.storage.records import Keep


def a_step(clock: ManualClock, key: str = "fetch", **changes: Any) -> StepRecord:
    plain = StepRecord(key=key, kind=StepKind.CALL, state=StepState.DONE, result="1", tries=1, begun_at=clock.now())
    return replace(plain, **changes)


async def save(store: Store, claim: Claim, *steps: StepRecord) -> list[bool]:
    return await store.save_steps([StepWrite(claim, step) for step in steps])


async def steps_of(store: Store, claim: Claim) -> list[StepRecord]:
    """What was said of the steps; when they were written is told by the database."""
    return [replace(step, changed_at=None) for step in (await store.steps([claim.job_id])).get(claim.job_id, [])]


@pytest.mark.parametrize("state", StepState)
@pytest.mark.parametrize("kind", StepKind)
async def test_e3_a_step_is_kept_with_all_that_was_said_of_it(
    store: Store, clock: ManualClock, kind: StepKind, state: StepState
) -> None:
    claim = await start(store)
    full = a_step(
        clock, kind=kind, state=state, result='{"pages":[1,2]}', note="slow", tries=3, due_at=clock.now() + MINUTE
    )
    bare = StepRecord(key="bare", kind=kind, state=state, begun_at=clock.now())
    assert await save(store, claim, full, bare) == [True, True]
    assert await steps_of(store, claim) == [full, bare]


async def test_e3_a_step_says_when_it_was_last_written(store: Store, clock: ManualClock) -> None:
    claim = await start(store)
    begun_at = clock.now()
    await save(store, claim, a_step(clock, state=StepState.BEGUN))
    clock.move(MINUTE)
    await save(store, claim, a_step(clock, begun_at=begun_at))
    clock.move(MINUTE)
    await save(store, claim, a_step(clock, result="2"))  # a step that is done stays as it is
    [step] = (await store.steps([claim.job_id]))[claim.job_id]
    assert (step.begun_at, step.changed_at) == (begun_at, begun_at + MINUTE)


async def test_e3_steps_come_back_in_the_order_in_which_they_were_begun(store: Store, clock: ManualClock) -> None:
    """Whatever their names, within one instant, and however often one was written since."""
    claim = await start(store)
    await save(store, claim, a_step(clock, "z", state=StepState.BEGUN), a_step(clock, "y"))
    await save(store, claim, a_step(clock, "x"))
    await save(store, claim, a_step(clock, "z", tries=2), a_step(clock, "a"))
    assert [step.key for step in await steps_of(store, claim)] == ["z", "y", "x", "a"]


async def test_e3_what_was_done_survives_the_attempt_and_is_seen_by_the_next(store: Store, clock: ManualClock) -> None:
    claim = await start(store)
    done = a_step(clock)
    await save(store, claim, done)
    await apply(store, transition.retrying(claim, Reason.FAILED, A_FAILURE, timedelta(0)))
    again = await claim_one(store, await employ(store))
    more = a_step(clock, "more")
    assert await save(store, again, more) == [True]
    assert await steps_of(store, again) == [done, more]


@pytest.mark.parametrize("over", [StepState.DONE, StepState.GIVEN_UP])
async def test_e3_a_step_that_is_over_is_never_written_over(store: Store, clock: ManualClock, over: StepState) -> None:
    """A repeated call is no error: a caller that lost the first answer may ask again."""
    claim = await start(store)
    first = a_step(clock, state=over, result='"first"')
    await save(store, claim, first)
    for state in StepState:
        second = a_step(clock, state=state, result='"second"', tries=9)
        assert await save(store, claim, second, a_step(clock, f"beside {state}")) == [True, True]
    assert (await steps_of(store, claim))[0] == first
    assert len(await steps_of(store, claim)) == 1 + len(StepState)


async def test_a_step_that_is_not_over_is_written_in_place(store: Store, clock: ManualClock) -> None:
    claim = await start(store)
    begun = a_step(clock, state=StepState.BEGUN, result=None, note="timed out", due_at=clock.now() + HOUR)
    await save(store, claim, begun)
    done = a_step(clock, tries=2)
    assert await save(store, claim, done) == [True]
    assert await steps_of(store, claim) == [done]


async def test_one_batch_may_begin_and_end_a_step(store: Store, clock: ManualClock) -> None:
    claim = await start(store)
    begun, done = a_step(clock, state=StepState.BEGUN, result=None), a_step(clock)
    late = a_step(clock, result='"late"')
    assert await save(store, claim, begun, done, late) == [True, True, True]
    assert await steps_of(store, claim) == [done]


async def test_a_claim_that_is_lost_keeps_no_step(store: Store, clock: ManualClock) -> None:
    """The others of the batch are written; each is told for itself."""
    lost = await start(store)
    await apply(store, transition.released(lost))
    held = await claim_one(store, await employ(store))
    writes = [
        StepWrite(lost, a_step(clock, "late")),
        StepWrite(held, a_step(clock, "fetch")),
        StepWrite(lost, a_step(clock, "fetch", result="2")),
        StepWrite(replace(held, job_id=new_job_id()), a_step(clock)),
    ]
    assert await store.save_steps(writes) == [False, True, False, False]
    assert await steps_of(store, held) == [a_step(clock, "fetch")]


async def test_a_job_that_is_final_keeps_its_steps_and_gets_no_more(store: Store, clock: ManualClock) -> None:
    claim = await start(store)
    await save(store, claim, a_step(clock))
    await apply(store, transition.succeeded(claim, None, ()))
    assert await save(store, claim, a_step(clock, "late")) == [False]
    assert await steps_of(store, claim) == [a_step(clock)]


async def test_steps_of_many_jobs_at_once(store: Store, clock: ManualClock) -> None:
    for _ in range(4):
        await enqueue(store)
    claims = await claim_some(store, await employ(store))
    *some, without = claims
    rounds = [StepWrite(claim, a_step(clock, f"step {n}", result=f"{n}")) for n in range(3) for claim in some]
    assert await store.save_steps(rounds) == [True] * 9
    found = await store.steps([claim.job_id for claim in claims] * 2)
    assert {job_id: [step.result for step in steps] for job_id, steps in found.items()} == {
        claim.job_id: ["0", "1", "2"] for claim in some
    }
    assert without.job_id not in found


async def test_nothing_to_save_and_nothing_to_look_for(store: Store) -> None:
    assert await store.save_steps([]) == []
    assert await store.steps([]) == {}


@pytest.mark.parametrize("text", HOSTILE)
async def test_any_text_is_kept_as_it_is(store: Store, clock: ManualClock, text: str) -> None:
    claim = await start(store)
    step = a_step(clock, text, note=text, result='"\\u0000 \\ud83e\\udda9"')
    assert await save(store, claim, step) == [True]
    assert await steps_of(store, claim) == [step]


async def test_a_name_that_cannot_be_kept_is_refused(store: Store, clock: ManualClock) -> None:
    claim = await start(store)
    with pytest.raises(ArgumentError, match="NUL"):
        await save(store, claim, a_step(clock), a_step(clock, "a\0b"))
    assert await steps_of(store, claim) == []


async def test_an_error_in_any_bytes_is_kept_as_well_as_can_be(store: Store, clock: ManualClock) -> None:
    claim = await start(store)
    assert await save(store, claim, a_step(clock, state=StepState.BEGUN, note="a\0b \ud800")) == [True]
    [step] = await steps_of(store, claim)
    assert step.note is not None
    assert step.note.startswith("a")


@pytest.mark.parametrize("how", ["purge", "prune", "delete"])
async def test_a_job_that_is_forgotten_takes_its_steps_along(store: Store, clock: ManualClock, how: str) -> None:
    claim = await start(store)
    await save(store, claim, a_step(clock))
    await apply(store, transition.succeeded(claim, None, ()))
    clock.move(2 * DAY)
    if how == "purge":
        await store.purge(only(claim.job_id), By("ops"), 10)
    elif how == "delete":
        await store.delete(only(claim.job_id), By("ops"), 10)
    else:
        await store.prune(Keep(succeeded=DAY), 10)
    assert await store.job(claim.job_id) is None
    assert await steps_of(store, claim) == []
