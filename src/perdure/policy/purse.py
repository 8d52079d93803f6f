"""The money of a budget: what was spent over a sliding window, and when enough of it is free again."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from datetime import datetime, timedelta
from math import fsum
from typing import Final

from perdure.domain.gate import Spend
from perdure.domain.ids import JobId

_ROUNDING: Final = 1 + 1e-9


def exceeds(amount: float, limit: float) -> bool:
    """Whether an amount is more than a limit, by more than rounding: ten times 0.1 is not more than 1."""
    return amount > limit * _ROUNDING


class Purse:
    """What was spent under one budget's name."""

    def __init__(self, spends: Iterable[Spend], now: datetime) -> None:
        self.now = now
        self.spends = list(spends)
        self.estimates = {spend.job_id: spend for spend in self.spends if spend.is_estimate}
        self.totals = dict[timedelta, float]()

    def total(self, window: timedelta) -> float:
        """What was spent within the window, estimates included."""
        if window not in self.totals:
            self.totals[window] = fsum(spend.amount for spend in self._within(window))
        return self.totals[window]

    def used(self, window: timedelta, job_id: JobId) -> float:
        """What others have spent, and the job itself apart from the estimate that its next one replaces."""
        own = self.estimates.get(job_id)
        return self.total(window) - (own.amount if own and own.at > self.now - window else 0)

    def enough_at(self, window: timedelta, limit: float, estimate: float, job_id: JobId) -> datetime:
        """When so much of the oldest spending has left the window that the estimate fits."""
        used, own = self.used(window, job_id), self.estimates.get(job_id)
        for spend in self._within(window):
            if spend is own:
                continue
            used -= spend.amount
            if not exceeds(used + estimate, limit):
                return spend.at + window
        return self.now + window

    def add(self, estimate: Spend) -> None:
        """Count an estimate from now on, in place of the one that its job has."""
        own = self.estimates.get(estimate.job_id)
        for window in self.totals:
            self.totals[window] = self.used(window, estimate.job_id) + estimate.amount
        if own:
            self.spends.remove(own)
        self.estimates[estimate.job_id] = estimate
        self.spends.append(estimate)

    def _within(self, window: timedelta) -> Iterable[Spend]:
        return self.spends[bisect_right(self.spends, self.now - window, key=lambda spend: spend.at) :]
