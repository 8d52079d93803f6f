"""What holds jobs back: pauses, breakers, budgets."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from perdure.domain.duration import parse_duration
from perdure.domain.gate import BreakerView, Pause
from perdure.errors import ArgumentError
from perdure.operate.commands.holds import Resumed, Spent
from perdure.surfaces.api.handlers.jobs.commands import Because
from perdure.surfaces.api.handlers.schedules import PauseUntil
from perdure.surfaces.api.route import Call, Given
from perdure.surfaces.api.values import Instant


class PauseList(Struct, frozen=True):
    """The current pauses, oldest first."""

    pauses: tuple[Pause, ...]


class NewPause(Given, frozen=True, kw_only=True):
    """What to pause: a queue, a kind, or that kind in that queue; `args` narrow it to jobs with these arguments."""

    queue: str | None = None
    kind: str | None = None
    args: dict[str, Any] | None = None
    until: Instant | None = None
    why: str | None = None


class BreakerList(Struct, frozen=True):
    """All breakers that jobs have reached, by name."""

    breakers: tuple[BreakerView, ...]


class OpenFor(Given, frozen=True, kw_only=True):
    """How long the breaker stays open, such as "10m"; omitted: until an operator closes it."""

    duration: str | None = None
    why: str | None = None


class BudgetList(Struct, frozen=True):
    """What each budget has spent in the last day, week and month."""

    budgets: tuple[Spent, ...]


async def list_pauses(call: Call[None, None]) -> PauseList:
    """List current pauses."""
    return PauseList(tuple(await call.desk.holds.pauses()))


async def create_pause(call: Call[None, NewPause]) -> Pause:
    """Pause a queue or kind, optionally until a time. Running jobs continue."""
    body = call.body
    return await call.desk.holds.pause(queue=body.queue, kind=body.kind, args=body.args, until=body.until, why=body.why)


async def end_pause(call: Call[None, Because]) -> Resumed:
    """End a pause by its id."""
    return await call.desk.holds.resume(call.path["id"], why=call.body.why)


async def pause_queue(call: Call[None, PauseUntil]) -> Pause:
    """Pause a queue, optionally until a time."""
    return await call.desk.holds.pause(queue=call.path["name"], until=call.body.until, why=call.body.why)


async def resume_queue(call: Call[None, Because]) -> Resumed:
    """End all pauses that name a queue."""
    return await call.desk.holds.resume(queue=call.path["name"], why=call.body.why)


async def pause_kind(call: Call[None, PauseUntil]) -> Pause:
    """Pause a kind, optionally until a time."""
    return await call.desk.holds.pause(kind=call.path["name"], until=call.body.until, why=call.body.why)


async def resume_kind(call: Call[None, Because]) -> Resumed:
    """End all pauses that name a kind."""
    return await call.desk.holds.resume(kind=call.path["name"], why=call.body.why)


async def list_breakers(call: Call[None, None]) -> BreakerList:
    """List breakers."""
    return BreakerList(tuple(await call.desk.holds.breakers()))


async def open_breaker(call: Call[None, OpenFor]) -> BreakerView:
    """Open a breaker: jobs behind it wait for a duration, or until it is closed."""
    length = None if call.body.duration is None else parse_duration("duration", call.body.duration)
    if length is not None and not length:
        raise ArgumentError("duration", "must be longer than 0; to let jobs through, close the breaker")
    return await call.desk.holds.open_breaker(call.path["name"], for_=length, why=call.body.why)


async def close_breaker(call: Call[None, Because]) -> BreakerView:
    """Close a breaker: jobs pass again, slowly at first."""
    return await call.desk.holds.close_breaker(call.path["name"], why=call.body.why)


async def list_budgets(call: Call[None, None]) -> BudgetList:
    """List budgets with their spending in the last day, week and month."""
    return BudgetList(tuple(await call.desk.holds.budgets()))


async def show_budget(call: Call[None, None]) -> Spent:
    """Show the spending of a budget."""
    return await call.desk.holds.spent(call.path["name"])
