"""Money in a sliding window: what is used, and when enough is free again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from perdure.domain.gate import OLDEST_SPENDS_SEEN, Spend, Spending
from perdure.domain.jobs.ids import JobId
from perdure.policy.limits.budget_window import BudgetSpending, exceeds

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
DAY = timedelta(days=1)
OURS, OTHER = (JobId(str(UUID(int=number))) for number in (1, 2))


def spend(hours_ago: float, amount: float, job_id: JobId = OTHER, *, is_estimate: bool = False) -> Spend:
    return Spend("ai", NOW - timedelta(hours=hours_ago), amount, job_id, is_estimate)


def test_rounding_does_not_exceed_a_limit() -> None:
    assert not exceeds(sum([0.1] * 10), 1)
    assert exceeds(1.001, 1)


def test_a_new_estimate_of_a_job_replaces_its_current_one() -> None:
    budget = BudgetSpending(Spending(totals={DAY: 8.0}, estimates=[spend(1, 3, OURS, is_estimate=True)]), NOW)
    assert (budget.used(DAY, OURS), budget.used(DAY, OTHER)) == (5, 8)
    budget.add(Spend("ai", NOW, 2, OURS, is_estimate=True))
    assert (budget.used(DAY, OURS), budget.used(DAY, OTHER)) == (5, 7)


def test_enough_is_free_when_the_oldest_spends_have_left_the_window() -> None:
    oldest = [spend(20, 1), spend(10, 4), spend(5, 5)]
    budget = BudgetSpending(Spending(totals={DAY: 10.0}, oldest={DAY: oldest}), NOW)
    assert budget.enough_at(DAY, 10, 0.5, OURS) == (oldest[0].at + DAY, True)
    assert budget.enough_at(DAY, 10, 3, OURS) == (oldest[1].at + DAY, True)


def test_the_jobs_own_estimate_does_not_have_to_leave_the_window() -> None:
    oldest = [spend(20, 4, OURS, is_estimate=True), spend(10, 6)]
    budget = BudgetSpending(Spending(totals={DAY: 10.0}, estimates=oldest[:1], oldest={DAY: oldest}), NOW)
    assert budget.enough_at(DAY, 10, 5, OURS) == (oldest[1].at + DAY, True)


def test_beyond_the_spends_that_were_read_the_time_is_a_lower_bound() -> None:
    oldest = [spend(20, 0.001) for _ in range(OLDEST_SPENDS_SEEN)]
    budget = BudgetSpending(Spending(totals={DAY: 50.0}, oldest={DAY: oldest}), NOW)
    assert budget.enough_at(DAY, 10, 5, OURS) == (oldest[-1].at + DAY, False)


def test_running_jobs_may_spend_less_than_estimated() -> None:
    budget = BudgetSpending(Spending(totals={DAY: 10.0}, under_way=4.0), NOW)
    assert budget.may_be_enough(DAY, 10, 4, OURS)
    assert not budget.may_be_enough(DAY, 10, 5, OURS)
