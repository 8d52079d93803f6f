"""Checks the gates of claims before they start; a claim that a gate or a breaker holds goes back at no cost.

Claims without gates pass at once, and so do those that a loan of the worker covers. The others ask the store in
batches: the first two go out at once, and requests that arrive meanwhile go out together when one is answered. They
hold a slot while they wait, so that the worker does not claim more than it can run. A closing worker gives them back.

While the database is away the requests are retried; after a while the claims are given back, and the first free worker
takes them. A request that fails for a reason of its own delays no other: its job is put off, with the reason.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from datetime import timedelta
from typing import Any, Final

from msgspec import Struct

from perdure.domain.gate import GateRequest, Held
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.outcome import Gated, Permanent
from perdure.domain.jobs.states import Reason
from perdure.errors import BudgetExceeded, PayloadError
from perdure.events import LoopFailed
from perdure.lifecycle.outage import AWAY, Outage
from perdure.policy.failures import bad_arguments, failure_of
from perdure.policy.limits.declared_gates import are_disputed
from perdure.policy.limits.gate_plan import GatePlan
from perdure.policy.limits.gate_record import micros, note_hold, note_pass
from perdure.policy.limits.gatekeeping import CLAIM_LOST
from perdure.storage.gates import GateStore
from perdure.worker.claiming.slots import Slots
from perdure.worker.gates.loans import Loans
from perdure.worker.gates.look import GateLook
from perdure.worker.gates.near_limits import NearLimits
from perdure.worker.gates.refusals import Refusals
from perdure.worker.gates.reports import GateReports, Passage
from perdure.worker.recording.collector import Collector
from perdure.worker.surroundings import Surroundings

_REQUESTS_PER_CALL: Final = 500
_CALLS_AT_ONCE: Final = 2  # while one batch is on its way another is decided
_KEPT_WITHOUT_ANSWER_SECONDS: Final = 10.0
_ASK_AGAIN_AFTER: Final = timedelta(seconds=30)
_WAITS_FOR_SLOT: Final = Reason.CONCURRENCY_REACHED.value


class GateBooks(Struct, frozen=True, kw_only=True, eq=False):
    """Where a gatekeeper records its answers: refusals, reports due to gates, warnings near a limit, loans."""

    refusals: Refusals
    reports: GateReports
    near: NearLimits
    loans: Loans


class Gatekeeper:
    """Passes claims on to `start`, or sends them back. `on_free`: a claim went back, and its slot is free."""

    def __init__(
        self,
        around: Surroundings,
        slots: Slots,
        books: GateBooks,
        *,
        start: Callable[[Sequence[Claim]], None],
        on_free: Callable[[], None],
    ) -> None:
        self._store: GateStore = around.store
        self._kinds = around.kinds
        self._emitter = around.emitter
        self._limits = around.settings.outage
        self._slots = slots
        self._refusals = books.refusals
        self._reports = books.reports
        self._near = books.near
        self._loans = books.loans
        self._start = start
        self._on_free = on_free
        self._asking: Collector[GateRequest] = Collector(self._ask, _REQUESTS_PER_CALL, _CALLS_AT_ONCE)
        self._plans: dict[str, GatePlan | None] = {}
        self._at_gate: set[tuple[JobId, int]] = set()
        self._stopping = False

    @property
    def waiting(self) -> int:
        """How many claims wait for the store's answer."""
        return len(self._at_gate)

    @property
    def claims(self) -> AbstractSet[tuple[JobId, int]]:
        """Job and token of the claims that wait for the store's answer."""
        return self._at_gate

    def is_waiting(self, claim: Claim) -> bool:
        """Whether this claim waits for the store's answer."""
        return (claim.job_id, claim.token) in self._at_gate

    def start(self, claims: Sequence[Claim]) -> None:
        """Start claims that need no answer of the store; ask for the others."""
        free: list[Claim] = []
        requests: list[GateRequest] = []
        for claim in claims:
            kind = claim.kind
            plan = self._plans[kind] if kind in self._plans else self._plan_for(kind)
            if plan is None:
                free.append(claim)
            elif (request := self._request(plan, claim, free)) is not None:
                requests.append(request)
        if requests and self._loans.are_any:
            requests = self._borrowed(requests, free)
        self._at_gate.update([(request.claim.job_id, request.claim.token) for request in requests])
        for queue, number in _queues(requests).items():
            self._slots.take(queue, number)
        if free:
            self._start(free)
        self._asking.add(requests)

    def stop(self) -> None:
        """Give back claims that have not been asked for, and those that pass from now on."""
        self._stopping = True
        requests = self._asking.take_back()
        self._leave(requests)
        self._refusals.give_back(request.claim for request in requests)

    async def drain(self) -> None:
        """Wait until every claim has passed or was sent back."""
        await self._asking.drain()

    async def close(self) -> None:
        """Leave claims without an answer to the rescuer."""
        await self._asking.close()

    def _plan_for(self, name: str) -> GatePlan | None:
        """How jobs of this kind ask; None: they have no gates."""
        kind = self._kinds.get(name)
        if kind is None:  # it may be declared later
            return None
        if not kind.is_gated:
            self._plans[name] = None
            return None
        others = [(other.name, other.gates) for other in self._kinds.values()]
        borrows = not are_disputed(kind.name, kind.gates, others)
        plan = GatePlan(kind.name, kind.gates, kind.breaker, kind.signature.names, borrows=borrows)
        self._plans[name] = plan
        return plan

    def _request(self, plan: GatePlan, claim: Claim, free: list[Claim]) -> GateRequest | None:
        """The request of a claim; None: it needs none, or it was put off."""
        values: tuple[Any, ...] = ()
        if plan.needs_arguments:
            try:
                values = self._kinds[claim.kind].signature.values(claim.args)
            except Exception:  # noqa: BLE001 - the executor meets the same error, and classifies it
                free.append(claim)
                return None
        try:
            request = plan.request(claim, values)
        except PayloadError as error:
            self._refusals.send_back(claim, bad_arguments(error))
            return None
        if claim.has_passed and not request.is_any:
            free.append(claim)
            return None
        return request

    def _borrowed(self, requests: list[GateRequest], free: list[Claim]) -> list[GateRequest]:
        """Start the claims that a loan covers; returns the others."""
        left: list[GateRequest] = []
        claimed_at, at = None, 0
        for request, passes in zip(requests, self._loans.passes(requests), strict=True):
            if passes:
                if request.claim.claimed_at is not claimed_at:  # jobs of one claim share theirs
                    claimed_at = request.claim.claimed_at
                    at = micros(claimed_at)
                free.append(note_pass(request, at))
            else:
                left.append(request)
        return left

    async def _ask(self, batch: list[GateRequest]) -> None:
        loop, borrower = asyncio.get_running_loop(), self._loans.borrower
        began = loop.time()

        async def ask() -> tuple[list[Held | None], GateLook]:
            look = GateLook(batch, borrower, self._loans.used_lately)
            return await self._store.pass_gates(batch, look.decide, borrower), look

        def missed(error: Exception, wait: float) -> None:
            self._loans.doubt(batch)
            if self._stopping or loop.time() + wait - began > _KEPT_WITHOUT_ANSWER_SECONDS:
                raise error

        def is_lost() -> bool:
            return borrower != self._loans.borrower  # claims under that id are lost

        try:
            outage = Outage("gates", self._emitter, self._limits)
            answers, look = await outage.outlast(ask, on_error=missed, stop=is_lost)
        except AWAY:
            self._give_back(batch)
        except Exception as error:  # noqa: BLE001 - one bad request must not fail the others
            self._loans.doubt(batch)
            if len(batch) == 1:
                self._put_off(batch[0], error)
                return
            for one in batch:
                await self._ask([one])
        else:
            self._answer(batch, answers, look)

    def _answer(self, batch: list[GateRequest], answers: list[Held | None], look: GateLook) -> None:
        passed: list[Claim] = []
        self._leave(batch)
        borrowers = look.changes.borrowers
        if borrowers:
            self._add_loans(batch, look)
        at = micros(batch[0].claim.claimed_at if look.state is None else look.state.now)
        for request, held in zip(batch, answers, strict=True):
            claim = request.claim
            if held is None:
                if request.concurrency and (claim.job_id, claim.token) not in borrowers:
                    self._reports.owe_slots(claim, request.concurrency)
                if request.breaker is not None:
                    is_trial = look.is_trial(request.breaker.name, claim)
                    self._reports.owe_news(claim, Passage(request.breaker, is_trial))
                passed.append(note_pass(request, at))
            elif held.reason != CLAIM_LOST:
                if held.reason == _WAITS_FOR_SLOT:
                    self._reports.owe_slots(claim, request.concurrency)
                self._refuse(request, held, at)
        self._let_in(passed, len(batch))
        self._near.warn(look.changes.warnings)
        if look.state is not None:
            self._reports.emit_changes(look.state.breakers, look.changes.breakers)

    def _refuse(self, request: GateRequest, held: Held, at: int) -> None:
        if held.fails:
            self._refusals.send_back(request.claim, Permanent(failure_of(BudgetExceeded(held.note))))
        else:
            self._refusals.send_back(note_hold(request, held, at), Gated(held.reason, held.note, held.wait))

    def _let_in(self, passed: list[Claim], asked: int) -> None:
        if passed:
            self._start(passed)
        if len(passed) < asked:
            self._on_free()

    def _add_loans(self, batch: list[GateRequest], look: GateLook) -> None:
        if look.borrower != self._loans.borrower:  # they were claimed under a lost id
            return
        borrowers = look.changes.borrowers
        users = [request for request in batch if (request.claim.job_id, request.claim.token) in borrowers]
        self._loans.add(look.changes.loans, users)

    def _give_back(self, batch: list[GateRequest]) -> None:
        self._leave(batch)
        self._refusals.give_back(request.claim for request in batch)
        self._on_free()

    def _put_off(self, request: GateRequest, error: Exception) -> None:
        claim = request.claim
        why = f"its gates could not be asked: {type(error).__name__}: {error}"
        self._emitter.emit(LoopFailed("gatekeeper", f"job {claim.job_id}: {why}"))
        self._leave([request])
        self._refusals.put_off(claim, _ASK_AGAIN_AFTER, why)
        self._on_free()

    def _leave(self, requests: Sequence[GateRequest]) -> None:
        self._at_gate.difference_update([(request.claim.job_id, request.claim.token) for request in requests])
        for queue, number in _queues(requests).items():
            self._slots.release(queue, number)


def _queues(requests: Sequence[GateRequest]) -> Counter[str]:
    return Counter([request.claim.queue for request in requests])
