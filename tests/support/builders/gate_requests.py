"""Gate requests in a few words, and jobs that stand before a gate."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from tests.support.builders.jobs import DAY, a_job, claim_some, employ

from perdure.domain.gate import BreakerCheck, BudgetCheck, ConcurrencyCheck, GateRequest, Held, RateCheck
from perdure.domain.jobs import transition
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import Reason
from perdure.domain.jobs.transition import Transition
from perdure.policy.limits.gate_record import micros, named, note_hold, note_pass
from perdure.policy.limits.gatekeeping import gatekeeper
from perdure.storage.port import Store


def slots(limit: int, *keys: str) -> dict[str, Any]:
    """At most so many at the same time, under each of these keys."""
    return {"concurrency": tuple(ConcurrencyCheck(key, limit) for key in keys or ("tenant:1",))}


def rate(limit: int, per: timedelta, *keys: str) -> dict[str, Any]:
    """At most so many starts in a stretch, under each of these keys."""
    return {"rates": tuple(RateCheck(key, limit, per) for key in keys or ("api",))}


def budget(limit: float, estimate: float, window: timedelta = DAY, name: str = "ai") -> dict[str, Any]:
    """At most so much money in a window."""
    return {"budgets": (BudgetCheck(name, estimate, ((window, limit),)),)}


def breaker(name: str = "ca", failures: int = 2) -> BreakerCheck:
    """A breaker that opens for a minute, with one trial."""
    return BreakerCheck(name, failures, timedelta(minutes=1), timedelta(minutes=1), 1)


async def claims_of(store: Store, count: int, queue: str = "default") -> list[Claim]:
    """So many jobs, handed in and claimed by a worker of their own; the queue must be empty."""
    await store.insert([a_job(queue=queue) for _ in range(count)])
    claims = await claim_some(store, await employ(store), count, queue)
    assert len(claims) == count
    return claims


async def ask(store: Store, claims: Sequence[Claim], **gates: Any) -> list[Held | None]:
    """Let these claims ask for the same gates, in one batch."""
    requests = [GateRequest(claim=claim, **gates) for claim in claims]
    return await store.pass_gates(requests, gatekeeper(requests))


async def passed(store: Store, claims: Sequence[Claim], **gates: Any) -> list[Claim]:
    """Those of these claims that may run."""
    answers = await ask(store, claims, **gates)
    return [claim for claim, held in zip(claims, answers, strict=True) if held is None]


async def park(store: Store, claims: Sequence[Claim], answers: Sequence[Held | None]) -> None:
    """Park those that are held, as a worker does."""
    moves = [
        transition.paused(claim, Reason(held.reason), held.wait, held.note)
        for claim, held in zip(claims, answers, strict=True)
        if held
    ]
    assert (await store.acknowledge(moves)).stale == ()


def past_gates(claim: Claim, at: datetime, key: str = "mail", estimate: float = 0.3) -> Claim:
    """The claim once it has passed a rate with this key and the budget `ai`."""
    rates, budgets = (RateCheck(key, 3, timedelta(minutes=1)),), (BudgetCheck("ai", estimate, ((DAY, 5.0),)),)
    request = GateRequest(claim=claim, rates=rates, budgets=budgets, named=named(rates, budgets=budgets))
    return note_pass(request, micros(at))


def held_by_rate(claim: Claim, at: datetime, wait: timedelta, key: str = "mail") -> Transition:
    """The move of a claim that a rate with this key holds from then on."""
    rates = (RateCheck(key, 3, timedelta(minutes=1)),)
    held = Held("rate limited", f"{key}: 3 of 3 starts in 1m", wait, key=key)
    claim = note_hold(GateRequest(claim=claim, rates=rates), held, micros(at))
    return transition.paused(claim, Reason.RATE_LIMITED, wait, held.note)
