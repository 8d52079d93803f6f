"""The stages between the fetcher and the handler: their order, and the one question before each of them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.support.bench import Ledger, a_claim

from perdure import App, Rate, WorkerSettings
from perdure.clock import SystemClock
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import JobState
from perdure.domain.jobs.transition import Transition, released
from perdure.events import Emitter
from perdure.worker.claiming.slots import Slots
from perdure.worker.settings import Queue
from perdure.worker.stages import GATES, PAUSES, QUARANTINE, RUN, ClaimStages, Stage, Start
from perdure.worker.surroundings import Surroundings
from perdure.worker.wiring.attempts import Owner, wire_attempts

NAMES = ("first", "second", "third")


class Way:
    """Three stages that let everything through, and tell what they saw."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.back: list[Transition] = []
        self.stages = ClaimStages(self.back.append)
        self.stages.define(*(Stage(name, self.stage(name), self.give_back) for name in NAMES))
        self.closes_in: str | None = None

    def stage(self, name: str) -> Start:
        def start(claims: Sequence[Claim]) -> None:
            self.seen.append(name)
            self.stages.is_closing = name == self.closes_in
            if name != NAMES[-1]:
                self.stages.after(name)(claims)

        return start

    def give_back(self, claim: Claim) -> Transition:
        return released(claim, has_passed=True)


def test_claims_pass_the_stages_in_their_order() -> None:
    way = Way()
    way.stages.start([a_claim("greet")])
    assert way.seen == list(NAMES)
    assert way.back == []


def test_a_claim_may_enter_at_a_later_stage() -> None:
    way = Way()
    way.stages.into("second")([a_claim("greet")])
    assert way.seen == ["second", "third"]


@pytest.mark.parametrize(("closes_in", "seen"), [("first", ["first"]), ("second", ["first", "second"])])
def test_g9_a_closing_worker_gives_back_what_reaches_the_next_stage(closes_in: str, seen: list[str]) -> None:
    way = Way()
    way.closes_in = closes_in
    claims = [a_claim("greet"), a_claim("greet")]
    way.stages.start(claims)
    assert way.seen == seen
    assert [move.claim for move in way.back] == claims
    assert all(move.has_passed for move in way.back)


@pytest.mark.parametrize(("stage", "has_passed"), [(QUARANTINE, False), (PAUSES, False), (GATES, False), (RUN, True)])
async def test_g9_what_has_passed_its_gates_need_not_again_after_a_deploy(stage: str, has_passed: bool) -> None:
    app, ledger = App("sqlite:///unused.db"), Ledger()

    @app.job(gates=[Rate(10, "1m")])
    async def greet() -> None:
        """Nothing."""

    parts = wire_attempts(
        Surroundings(
            store=ledger.store, kinds=app.kinds, settings=WorkerSettings(), emitter=Emitter(), clock=SystemClock()
        ),
        Slots((Queue("default"),), 10, 10),
        Owner(on_free=lambda: None),
    )
    parts.stages.is_closing = True
    claim = a_claim("greet")
    parts.stages.into(stage)([claim])
    await parts.acknowledger.drain()
    move = ledger.written[claim.job_id]
    assert (move.to, move.has_passed) == (JobState.READY, has_passed)
