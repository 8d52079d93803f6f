"""Steps reach the store together, through outages, and not after the claim was lost."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from tests.support.builders.jobs import numbered_id
from tests.support.flow_store import FlowStoreInMemory

from perdure import ConflictError, StoreUnavailable
from perdure.clock import ManualClock
from perdure.domain.flows.flow import Progress, StepKind, StepRecord, StepState
from perdure.domain.jobs.job import Claim
from perdure.events import Emitter, Event, StoreRecovered, StoreTrouble
from perdure.flows import recorder as module
from perdure.flows.recorder import Recorder

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def a_claim(number: int) -> Claim:
    return Claim(numbered_id(number), 1, "greet", "default", "{}", 0, 0, 3, NOW, NOW)


def a_step(key: str = "fetch", result: str | None = "1") -> StepRecord:
    return StepRecord(key=key, kind=StepKind.CALL, state=StepState.DONE, result=result, begun_at=NOW)


class Desk:
    """A recorder, its store, and what it tells."""

    def __init__(self) -> None:
        self.store = FlowStoreInMemory()
        self.told: list[Event] = []
        self.lost: list[Claim] = []
        emitter = Emitter()
        emitter.subscribe(self.told.append)
        self.recorder = Recorder(cast("Any", self.store), emitter, ManualClock(), self.lost.append)


@pytest.fixture
async def desk() -> Desk:
    return Desk()


async def test_the_first_step_goes_out_at_once_and_what_comes_meanwhile_goes_out_together(desk: Desk) -> None:
    claims = [a_claim(number) for number in range(100)]
    first = asyncio.create_task(desk.recorder.save(claims[0], a_step()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await asyncio.gather(first, *(desk.recorder.save(claim, a_step()) for claim in claims[1:]))
    assert desk.store.saves == [1, 99]
    assert set(desk.store.kept) == {claim.job_id for claim in claims}


async def test_steps_are_read_together_too(desk: Desk) -> None:
    claims = [a_claim(number) for number in range(10)]
    await desk.recorder.save(claims[3], a_step())
    found = await asyncio.gather(*(desk.recorder.load(claim.job_id) for claim in claims))
    assert [len(steps) for steps in found] == [0, 0, 0, 1, 0, 0, 0, 0, 0, 0]
    assert desk.store.loads == [10]


async def test_while_the_database_is_away_the_step_is_tried_again_until_it_is_kept(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perdure.policy.outage_backoff._WAIT_BEFORE_BACKOFF", timedelta(0))
    desk.store.troubles = [StoreUnavailable("gone"), StoreUnavailable("still gone")]
    await desk.recorder.save(a_claim(1), a_step())
    assert desk.store.kept[a_claim(1).job_id]["fetch"] == a_step()
    assert [type(event) for event in desk.told] == [StoreTrouble, StoreTrouble, StoreRecovered]


async def test_a_step_that_is_refused_does_not_take_the_others_with_it(desk: Desk) -> None:
    desk.store.refused["bad"] = ValueError("not in this database")
    kept = await asyncio.gather(
        *(desk.recorder.save(a_claim(number), a_step(key)) for number, key in enumerate(["a", "bad", "b"])),
        return_exceptions=True,
    )
    assert [str(answer) for answer in kept] == ["None", "not in this database", "None"]
    assert set(desk.store.kept) == {a_claim(0).job_id, a_claim(2).job_id}


async def test_g3_a_lost_claim_stops_its_attempt_and_no_other(desk: Desk) -> None:
    robbed, other = a_claim(1), a_claim(2)
    desk.store.lost.add(robbed.job_id)
    with pytest.raises(ConflictError, match="has lost its claim"):
        await desk.recorder.save(robbed, a_step())
    await desk.recorder.save(other, a_step())
    assert (desk.lost, set(desk.store.kept)) == ([robbed], {other.job_id})


async def test_g9_a_step_on_its_way_is_written_to_the_end_before_its_attempt_is_let_go(desk: Desk) -> None:
    saving = asyncio.create_task(desk.recorder.save(a_claim(1), a_step()))
    await asyncio.sleep(0)
    saving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await saving
    assert set(desk.store.kept) == {a_claim(1).job_id}


class Talker:
    """An attempt that says how far it is."""

    def __init__(self, number: int) -> None:
        self.claim = a_claim(number)
        self.words = [1.0, 2.0, 3.0]

    def take_progress(self) -> Progress | None:
        return Progress(current=self.words.pop(0), total=3, note=None, at=NOW) if self.words else None


async def test_progress_of_all_attempts_is_written_together_at_intervals(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PROGRESS_INTERVAL_SECONDS", 0.0)
    talkers = [Talker(number) for number in range(3)]
    for talker in talkers:
        desk.recorder.note_progress(talker)
    await desk.recorder.show_now()
    assert {job_id: word.current for job_id, word in desk.store.shown.items()} == {
        talker.claim.job_id: 1 for talker in talkers
    }
    desk.store.troubles = [StoreUnavailable("gone")]
    desk.recorder.note_progress(talkers[0])
    await desk.recorder.show_now()
    assert [type(event) for event in desk.told] == [StoreTrouble], "nothing of value is lost"
    await desk.recorder.close()


async def test_who_still_waits_when_the_worker_has_closed_is_let_go(desk: Desk) -> None:
    desk.store.troubles = [StoreUnavailable("gone")] * 100
    waiting = [
        asyncio.create_task(desk.recorder.save(a_claim(1), a_step())),
        asyncio.create_task(desk.recorder.load(a_claim(2).job_id)),
    ]
    for _ in range(5):
        await asyncio.sleep(0)
    await desk.recorder.close()
    done, _ = await asyncio.wait(waiting, timeout=10)
    assert [task.cancelled() for task in done] == [True, True]
