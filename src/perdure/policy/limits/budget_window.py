"""The money of a budget: what was spent in a sliding window, and when enough is free again."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from perdure.domain.gate import OLDEST_SPENDS_SEEN, Spend, Spending
from perdure.domain.jobs.ids import JobId

_ROUNDING: Final = 1 + 1e-9


def exceeds(amount: float, limit: float) -> bool:
    """Whether an amount exceeds a limit by more than rounding: ten times 0.1 does not exceed 1."""
    return amount > limit * _ROUNDING


class BudgetSpending:
    """What was spent under one budget's name."""

    def __init__(self, spending: Spending, now: datetime) -> None:
        self.now = now
        self.totals = dict(spending.totals)
        self.oldest = {window: list(spends) for window, spends in spending.oldest.items()}
        self.estimates = {spend.job_id: spend for spend in spending.estimates}
        self.under_way = spending.under_way
        self.unseen = {
            window: spends[-1].at for window, spends in self.oldest.items() if len(spends) >= OLDEST_SPENDS_SEEN
        }
        """For windows with more spends than were loaded: since when."""

    def used(self, window: timedelta, job_id: JobId) -> float:
        """What other jobs have spent, and the job itself without the estimate that its next one replaces."""
        own = self.estimates.get(job_id)
        return self.totals[window] - (own.amount if own and own.at > self.now - window else 0)

    def enough_at(self, window: timedelta, limit: float, estimate: float, job_id: JobId) -> tuple[datetime, bool]:
        """When enough of the oldest spending leaves the window for the estimate to fit; False: then or later."""
        used, end = self.used(window, job_id), self.unseen.get(window, self.now)
        for spend in self.oldest.get(window, ()):
            if spend.is_estimate and spend.job_id == job_id:
                continue
            if spend.at > end:
                break
            used -= spend.amount
            if not exceeds(used + estimate, limit):
                return spend.at + window, True
        return end + window, window not in self.unseen

    def may_be_enough(self, window: timedelta, limit: float, estimate: float, job_id: JobId) -> bool:
        """Whether the estimate fits if running jobs spend less than estimated."""
        return not exceeds(self.used(window, job_id) - self.under_way + estimate, limit)

    def add(self, estimate: Spend) -> None:
        """Count an estimate from now on, in place of the job's current one."""
        own = self.estimates.get(estimate.job_id)
        for window in self.totals:
            self.totals[window] = self.used(window, estimate.job_id) + estimate.amount
        for spends in self.oldest.values():
            if own is not None and own in spends:
                spends.remove(own)
            spends.append(estimate)
        self.under_way += estimate.amount
        self.estimates[estimate.job_id] = estimate
