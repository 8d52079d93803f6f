"""Limits and spending, as people see and set them."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from http import HTTPStatus
from typing import Final

import msgspec

from perdure import Desk, JobFilter, NotFoundError, Page
from perdure_systems.kit.web import Problem
from perdure_systems.pulse.jobs import records
from perdure_systems.pulse.limits import BUDGET
from perdure_systems.pulse.settings import QUEUE
from perdure_systems.pulse.web.views import reason_of

_MINUTE: Final = timedelta(minutes=1)
_PAUSED: Final = JobFilter(queue=QUEUE, kind="pulse.analyse", states="paused")
_AMOUNT_MAX: Final = 1_000_000_000


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """One window of the budget; `limit` None: there is none."""

    name: str
    span: str
    spent: float
    limit: float | None

    @property
    def percent(self) -> int:
        """How much of it is spent, from 0 to 100."""
        return min(round(100 * self.spent / self.limit), 100) if self.limit else 0


class Money(msgspec.Struct, frozen=True, kw_only=True):
    """What was spent in any 24 hours, 7 days and 30 days, and how often the model was asked in the last minute."""

    windows: tuple[Window, ...]
    calls_last_minute: int
    calls_per_minute: int
    pause_on_budget: bool
    rate_limited: int
    budget_exceeded: int


class NewLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits to be set; what is left out stays. An amount of 0 takes the limit away."""

    daily: float | msgspec.UnsetType = msgspec.UNSET
    weekly: float | msgspec.UnsetType = msgspec.UNSET
    monthly: float | msgspec.UnsetType = msgspec.UNSET
    calls_per_minute: int | msgspec.UnsetType = msgspec.UNSET
    pause_on_budget: bool | msgspec.UnsetType = msgspec.UNSET


async def money(desk: Desk) -> Money:
    """Limits and spending as they stand."""
    limits = await records.limits()
    spent = {"daily": 0.0, "weekly": 0.0, "monthly": 0.0}
    try:
        found = await desk.holds.spent(BUDGET)
    except NotFoundError:  # nothing was spent yet
        pass
    else:
        spent = {"daily": found.daily, "weekly": found.weekly, "monthly": found.monthly}
    held = await _held(desk)
    return Money(
        windows=tuple(
            Window(name=name, span=span, spent=round(spent[name], 6), limit=getattr(limits, name))
            for name, span in (("daily", "24 hours"), ("weekly", "7 days"), ("monthly", "30 days"))
        ),
        calls_last_minute=await records.calls_since(await desk.now() - _MINUTE),
        calls_per_minute=limits.calls_per_minute,
        pause_on_budget=limits.pause_on_budget,
        rate_limited=held["rate_limited"],
        budget_exceeded=held["budget_exceeded"],
    )


async def change_limits(desk: Desk, new: NewLimits) -> Money:
    """Set limits, note it in the audit trail, and let jobs that wait for a gate ask it again now."""
    asked = {name: value for name, value in msgspec.structs.asdict(new).items() if value is not msgspec.UNSET}
    for name, value in asked.items():
        _check(name, value)
    now = await desk.now()
    for name, value in asked.items():
        await records.set_limit(name, float(value), desk.actor, now)
    if asked:
        await desk.record("pulse_limits", details=asked)
        await desk.run_now(_PAUSED)
    return await money(desk)


def _check(name: str, value: float) -> None:
    least = 1 if name == "calls_per_minute" else 0
    if not least <= value <= _AMOUNT_MAX:
        raise Problem(
            HTTPStatus.BAD_REQUEST, f"{name} must be from {least} to {_AMOUNT_MAX:,}, got {value}", field=name
        )


async def _held(desk: Desk) -> Counter[str]:
    """How many jobs wait, by reason; at most the newest 500 are looked at."""
    return Counter(reason_of(job) for job in (await desk.jobs(_PAUSED, Page(limit=500))).jobs)
