"""Gate requests and loans."""

from __future__ import annotations

from datetime import timedelta

from tests.support.builders.views import a_claim

from perdure.domain.gate import BreakerCheck, BudgetCheck, ConcurrencyCheck, GateRequest, Loan, RateCheck

MINUTE = timedelta(minutes=1)
CLAIM = a_claim()


def test_any_one_gate_makes_a_request_gated() -> None:
    breaker = BreakerCheck("gateway", 5, MINUTE, MINUTE, 1)
    assert not GateRequest(claim=CLAIM).is_any
    for request in (
        GateRequest(claim=CLAIM, rates=(RateCheck("api", 1, MINUTE),)),
        GateRequest(claim=CLAIM, concurrency=(ConcurrencyCheck("api", 1),)),
        GateRequest(claim=CLAIM, budgets=(BudgetCheck("api", 1.0, ((MINUTE, 5.0),)),)),
        GateRequest(claim=CLAIM, breaker=breaker),
    ):
        assert request.is_any


def test_loans_of_one_key_over_two_windows_are_two_loans() -> None:
    assert Loan("api", MINUTE, 3).name == Loan("api", MINUTE, 5).name != Loan("api", 2 * MINUTE, 3).name
