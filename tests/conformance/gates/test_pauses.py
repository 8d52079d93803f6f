"""GateStore: pauses, and the jobs that they hold (C11)."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from tests.conftest import OpenStore
from tests.support.builders.gate_requests import claims_of
from tests.support.builders.jobs import HOSTILE, HOUR, INSTANT, MINUTE, apply, claim_some, employ, show, state_of
from tests.support.databases.behind import query

from perdure.clock import ManualClock
from perdure.domain.gate import Pause
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.operate.audit import By
from perdure.errors import ArgumentError
from perdure.storage.port import Store


def a_pause(clock: ManualClock, pause_id: str = "p1", **changes: object) -> Pause:
    return Pause(id=pause_id, actor="ann", at=clock.now(), **{"queue": "mail"} | changes)  # type: ignore[arg-type]


async def hold(store: Store, claims: Sequence[Claim], note: str) -> None:
    """Park jobs as a worker does that knows of the pause."""
    await apply(store, *(transition.paused(claim, Reason.ON_HOLD, None, note) for claim in claims))


def audit(url: str) -> list[tuple[str, str, dict[str, str]]]:
    rows = query(url, "SELECT actor, action, details FROM {audit} ORDER BY id")
    return [
        (actor, action, json.loads(details) if isinstance(details, str) else details) for actor, action, details in rows
    ]


async def test_a_pause_is_kept_and_seen_by_all(store: Store, other_store: OpenStore, clock: ManualClock) -> None:
    first = a_pause(clock, args='{"tenant":7}', kind="send", until=clock.now() + HOUR, why="they asked us to")
    await store.pause(first, By("ada"))
    clock.move(MINUTE)
    second = a_pause(clock, "p0")
    await store.pause(second, By("ada"))
    assert await (await other_store()).pauses() == [first, second]


async def test_a_pause_that_is_kept_twice_is_one(store: Store, clock: ManualClock, engine_url: str) -> None:
    """A caller that does not know whether a commit succeeded may try again."""
    for _ in range(2):
        await store.pause(a_pause(clock), By("ada"))
    assert await store.pauses() == [a_pause(clock)]
    assert len(audit(engine_url)) == 1


async def test_who_paused_and_resumed_is_recorded(store: Store, clock: ManualClock, engine_url: str) -> None:
    await store.pause(a_pause(clock, why="they asked us to"), By("ann", "they asked us to"))
    await store.resume(["p1", "unheard of"], By("ben"))
    assert audit(engine_url) == [
        ("ann", "pause", {"pause": "p1", "after": {"queue": "mail"}}),
        ("ben", "resume", {"pause": "p1", "before": {"queue": "mail"}}),
    ]


@pytest.mark.parametrize("note", ["pause p1", "pause p1 queue mail: they asked us to", "pause p1: they asked us to"])
async def test_resume_makes_the_jobs_ready_that_were_held(store: Store, clock: ManualClock, note: str) -> None:
    mine, others = await claims_of(store, 3), await claims_of(store, 1)
    for pause_id in ("p1", "p11"):
        await store.pause(a_pause(clock, pause_id), By("ada"))
    await hold(store, mine, note)
    await hold(store, others, "pause p11: another")
    assert await store.resume(["p1"], By("ann")) == 3
    assert [pause.id for pause in await store.pauses()] == ["p11"]
    for claim in mine:
        view = await show(store, claim.job_id)
        assert (view.state, view.reason) == (JobState.READY, "resumed")
    assert await state_of(store, others[0].job_id) is JobState.PAUSED
    assert await store.resume(["p1"], By("ann")) == 0
    assert await store.resume([], By("ann")) == 0
    again = await claim_some(store, await employ(store))
    assert [claim.job_id for claim in again] == [claim.job_id for claim in mine]


async def test_a_pause_ends_with_its_time_and_its_jobs_come_back(store: Store, clock: ManualClock) -> None:
    claims = await claims_of(store, 2)
    await store.pause(a_pause(clock, until=clock.now() + HOUR), By("ada"))
    await hold(store, claims, "pause p1: for an hour")
    clock.move(HOUR - INSTANT)
    assert [pause.id for pause in await store.pauses()] == ["p1"]
    assert await state_of(store, claims[0].job_id) is JobState.PAUSED
    clock.move(INSTANT)
    assert await store.pauses() == []
    assert {await state_of(store, claim.job_id) for claim in claims} == {JobState.READY}
    assert await store.pauses() == []


async def test_a_job_that_is_held_for_a_pause_that_is_gone_comes_back(store: Store, clock: ManualClock) -> None:
    """A worker may park it just after an operator has resumed: nothing would ever wake it."""
    [late], [held] = await claims_of(store, 1), await claims_of(store, 1)
    await store.pause(a_pause(clock, "p1"), By("ada"))
    await store.pause(a_pause(clock, "p12"), By("ada"))
    await store.resume(["p12"], By("ann"))
    await hold(store, [late], "pause p12: too late")
    await hold(store, [held], "pause p1: they asked us to")
    assert await store.forget_gates(100) == 1
    assert await state_of(store, late.job_id) is JobState.READY
    assert await state_of(store, held.job_id) is JobState.PAUSED
    assert await store.forget_gates(100) == 0


async def test_other_paused_jobs_stay_where_they_are(store: Store, clock: ManualClock) -> None:
    [claim] = await claims_of(store, 1)
    await store.pause(a_pause(clock), By("ada"))
    await apply(store, transition.paused(claim, Reason.PAUSED, None, "pause p1: not on hold"))
    assert await store.resume(["p1"], By("ann")) == 0
    assert await state_of(store, claim.job_id) is JobState.PAUSED


async def test_any_number_of_jobs_is_set_free(store: Store, clock: ManualClock) -> None:
    """They come back in batches; more than one of them are needed here."""
    claims = await claims_of(store, 2_050)
    await store.pause(a_pause(clock), By("ada"))
    await hold(store, claims, "pause p1: all of them")
    assert await store.resume(["p1"], By("ann")) == 2_050


async def test_pauses_with_any_text_are_kept_apart(store: Store, clock: ManualClock) -> None:
    held: dict[str, JobId] = {}
    for text in HOSTILE:
        await store.pause(a_pause(clock, text, queue=text, kind=text, args=text, why=text), By("ada"))
        claims = await claims_of(store, 1)
        await hold(store, claims, f"pause {text}: {text}")
        held[text] = claims[0].job_id
    assert {pause.id for pause in await store.pauses()} == set(HOSTILE)
    for text, job_id in held.items():
        assert await store.resume([text], By(text)) == 1
        assert await state_of(store, job_id) is JobState.READY


async def test_text_that_cannot_be_stored_is_refused_by_name(store: Store, clock: ManualClock) -> None:
    for field in ("id", "queue", "kind", "args"):
        with pytest.raises(ArgumentError, match=field):
            await store.pause(Pause(**{"id": "p", "actor": "ann", "at": clock.now()} | {field: "a\0b"}), By("ada"))  # type: ignore[arg-type]
    assert await store.pauses() == []
