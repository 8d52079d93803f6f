"""What the tests of loans on the store itself share."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from tests.support.builders.gate_requests import claims_of, rate, slots
from tests.support.builders.jobs import (
    SECOND,
    a_job,
    apply,
    claim_some,
    employ,
)
from tests.support.databases.behind import query

from perdure.domain.gate import GateChanges, GateRequest, GateState, Held, Loan
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import WorkerId
from perdure.domain.jobs.job import Claim
from perdure.policy.limits.gatekeeping import gatekeeper
from perdure.policy.limits.lending import SLOTS
from perdure.storage.port import Store

SLOT: Final = ("tenant:1", SLOTS)
START: Final = ("api", SECOND)


async def borrow(store: Store, borrower: WorkerId, claims: Sequence[Claim], **gates: Any) -> list[Held | None]:
    """Let these claims of a worker ask for the same gates, in one batch, and lend it what may be lent."""
    requests = [GateRequest(claim=claim, **gates) for claim in claims]
    return await store.pass_gates(requests, gatekeeper(requests, lambda _: 0), borrower)


async def staffed(store: Store, count: int) -> tuple[WorkerId, list[Claim]]:
    """A worker, and so many jobs that it holds; the queue must be empty."""
    worker_id = await employ(store)
    await store.insert([a_job() for _ in range(count)])
    claims = await claim_some(store, worker_id, count)
    assert len(claims) == count
    return worker_id, claims


async def done(store: Store, *claims: Claim) -> None:
    await apply(store, *(transition.succeeded(claim, None, ()) for claim in claims))


async def idle_loan(store: Store, number: int, **gates: Any) -> WorkerId:
    """A worker to which so much of each gate is lent, and that uses nothing of it."""
    worker_id, claims = await staffed(store, number)
    requests = [GateRequest(claim=claim, **gates) for claim in claims]
    decide, lent = gatekeeper(requests, lambda _: 0), list[Loan]()

    def note(state: GateState) -> tuple[list[Held | None], GateChanges]:
        answers, changes = decide(state)
        lent[:] = changes.loans
        return answers, changes

    assert await store.pass_gates(requests, note, worker_id) == [None] * number
    assert [loan.number for loan in lent] == [number] * sum(map(len, gates.values()))
    await done(store, *claims)
    return worker_id


async def state_for(store: Store, **gates: Any) -> GateState:
    """What somebody who asks for these gates is shown."""
    [claim] = await claims_of(store, 1, "a look")
    shown: list[GateState] = []

    def look(state: GateState) -> tuple[list[Held | None], GateChanges]:
        shown.append(state)
        return [None], GateChanges()

    await store.pass_gates([GateRequest(claim=claim, **gates)], look)
    await done(store, claim)
    return shown[-1]


async def held_slots(store: Store, key: str = "tenant:1") -> int:
    return (await state_for(store, **slots(99, key))).holders.get(key, 0)


async def lent_starts(store: Store, key: str = "api") -> int:
    """Over whatever time."""
    lent = (await state_for(store, **rate(99, SECOND, key))).lent
    return sum(number for (name, _), number in lent.items() if name == key)


async def lend(store: Store, borrower: WorkerId, *loans: Loan) -> None:
    """Lend this, whatever the rules say."""
    [claim] = await claims_of(store, 1, "a loan")
    requests = [GateRequest(claim=claim, **slots(99, *{loan.key for loan in loans}))]
    await store.pass_gates(requests, lambda _: ([None], GateChanges(loans=loans)), borrower)
    await done(store, claim)


def rows(url: str) -> dict[tuple[str, timedelta, int], int]:
    """The loans as they are written: key, time and worker, and how much."""
    found = query(url, "SELECT key, span, worker_id, number FROM {gate_loan}")
    return {
        (key, span if isinstance(span, timedelta) else timedelta(microseconds=span), worker_id): number
        for key, span, worker_id, number in found
    }
