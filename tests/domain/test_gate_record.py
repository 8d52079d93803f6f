"""How long a gate has held a job."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from perdure.domain.gate_record import GateSort, GateVisit

NOW = datetime(2026, 1, 1, 14, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def test_a_hold_that_goes_on_is_counted_up_to_now_and_earlier_holds_with_it() -> None:
    visit = GateVisit(gate=GateSort.RATE, key="mail", held_since=NOW - 5 * SECOND, held_seconds=2.5)
    assert visit.is_held
    assert visit.held_for(NOW) == 7.5 * SECOND


def test_a_hold_that_is_over_counts_once() -> None:
    over = GateVisit(
        gate=GateSort.BUDGET, key="ai", held_since=NOW - 9 * SECOND, held_until=NOW - 4 * SECOND, held_seconds=5.0
    )
    assert not over.is_held
    assert over.held_for(NOW) == 5 * SECOND


def test_a_gate_that_never_held_a_job_and_a_clock_that_was_put_back_count_nothing() -> None:
    assert GateVisit(gate=GateSort.BREAKER, key="smtp", passed_at=NOW).held_for(NOW) == timedelta(0)
    assert GateVisit(gate=GateSort.RATE, key="mail", held_since=NOW + SECOND).held_for(NOW) == timedelta(0)
