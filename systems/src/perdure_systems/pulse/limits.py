"""How often the model may be asked, and how much that may cost: the gates before each call."""

from __future__ import annotations

from typing import Final

import msgspec

from perdure import Budget, Pause, Permanent, Rate
from perdure_systems.pulse.settings import PulseSettings

BUDGET: Final = "pulse.model"
_RATE: Final = "pulse.model"
_LOOK_AGAIN: Final = "1h"


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits in force. None: no limit."""

    calls_per_minute: int
    daily: float | None
    weekly: float | None
    monthly: float | None
    pause_on_budget: bool

    @property
    def has_budget(self) -> bool:
        """Whether money is limited at all."""
        return any(amount is not None for amount in (self.daily, self.weekly, self.monthly))

    def gates(self, estimate: float) -> list[Rate | Budget]:
        """What a call of this price must pass: first the rate over any 60 seconds, then the money.

        Raises a verdict if the price is more than a limit, since such a call can never be made.
        """
        gates: list[Rate | Budget] = [Rate(self.calls_per_minute, "60s", name=_RATE)]
        amounts = {"daily": self.daily, "weekly": self.weekly, "monthly": self.monthly}
        for window, amount in amounts.items():
            if amount is not None and estimate > amount:
                why = f"budget exceeded: {BUDGET}: one call costs {estimate:g}, the {window} limit is {amount:g}"
                raise Pause(why, _LOOK_AGAIN) if self.pause_on_budget else Permanent(why)
        if self.has_budget:
            budget = Budget(
                BUDGET,
                daily=self.daily,
                weekly=self.weekly,
                monthly=self.monthly,
                estimate=estimate,
                when_spent="pause" if self.pause_on_budget else "fail",
            )
            gates.append(budget)
        return gates


def limits_of(settings: PulseSettings) -> Limits:
    """The limits that the environment sets."""
    return Limits(
        calls_per_minute=settings.calls_per_minute,
        daily=settings.daily,
        weekly=settings.weekly,
        monthly=settings.monthly,
        pause_on_budget=settings.pause_on_budget,
    )
