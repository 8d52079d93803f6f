"""Gates: what holds jobs back. Pauses, breakers with their history, rates, slots and budgets with their usage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from starlette.responses import Response

from perdure.domain.declared_limits import BreakerLimit, BudgetLimit, DeclaredLimit, RateLimit, SlotLimit
from perdure.domain.gate import BreakerState, BreakerView
from perdure.domain.operate.audit import AuditEntry
from perdure.operate.commands.holds import Spent
from perdure.operate.wording import some
from perdure.policy.limits.gatekeeping import NEAR_SHARE
from perdure.surfaces.desk.rooms import Room
from perdure.surfaces.desk.view.numbers import short_span
from perdure.surfaces.desk.visit import Visit

room = Room("gates")
Limits = Mapping[str, tuple[DeclaredLimit, ...]]
_HISTORY_ENTRIES_READ: Final = 50
_HISTORY_ENTRIES_PER_BREAKER: Final = 5
_FRESH_SECONDS: Final = 5.0  # of what budgets have spent, and of the stored limits
_ORDER: Final = (BreakerState.OPEN, BreakerState.HALF_OPEN, BreakerState.CLOSED)  # breakers that hold jobs come first
_WINDOWS: Final = ("daily", "weekly", "monthly")
_SPANS: Final = {"daily": "24 h", "weekly": "7 d", "monthly": "30 d"}


class BreakerRow(Struct, frozen=True, kw_only=True):
    """A breaker, its declaration in code, and the commands on it, newest first."""

    view: BreakerView
    declared: BreakerLimit | None
    kinds: tuple[str, ...]
    history: tuple[AuditEntry, ...]


class Window(Struct, frozen=True, kw_only=True):
    """The spending in one window; `limit` None: no kind declares one."""

    span: str
    spent: float
    limit: float | None

    @property
    def share(self) -> float | None:
        """How much of the limit is used."""
        return None if self.limit is None else self.spent / self.limit

    @property
    def tone(self) -> str:
        """The colour of its meter."""
        return tone_of(self.share or 0)


def tone_of(share: float) -> str:
    """The colour of a meter: limit reached, near, or far."""
    return "dead" if share >= 1 else "retrying" if share >= NEAR_SHARE else "running"


class BudgetRow(Struct, frozen=True, kw_only=True):
    """A budget: its spending, and the lowest limits that kinds declare."""

    name: str
    windows: tuple[Window, ...]
    kinds: tuple[str, ...]


class LimitRow(Struct, frozen=True, kw_only=True):
    """A rate or a number of slots, declared by a kind.

    `used`: how many slots are in use; None: it is a rate, or each value of its key has its own slots.
    """

    kind: str
    name: str
    what: str
    by: str
    slots: int = 0
    used: int | None = None

    @property
    def tone(self) -> str:
        """The colour of its meter."""
        return tone_of((self.used or 0) / self.slots if self.slots else 0)


@room.page("/gates")
async def gates(visit: Visit) -> Response:
    """Everything that can hold a job back before it runs."""
    pauses = await visit.shared("pauses", visit.desk.holds.pauses)
    breakers = await visit.shared("breakers", visit.desk.holds.breakers)
    history = await visit.shared(
        "breaker history", lambda: visit.desk.audit(action="breaker", limit=_HISTORY_ENTRIES_READ)
    )
    spent = await visit.shared("budgets", visit.desk.holds.budgets, _FRESH_SECONDS)
    kinds = await known_limits(visit)
    return await visit.page(
        "pages/gates.html",
        title="Gates",
        now=await visit.now(),
        pauses=pauses,
        breakers=[
            _breaker_row(view, kinds, history.entries)
            for view in sorted(breakers, key=lambda view: (_ORDER.index(view.state), view.name))
        ],
        budgets=_budget_rows(spent, kinds),
        limits=_limit_rows(kinds, await _running(visit) if kinds else {}),
        near=NEAR_SHARE,
    )


@room.command("/gates/pauses/{id}/resume", confirm="End this pause?")
async def resume(visit: Visit) -> Response:
    """End one pause."""
    resumed = await visit.desk.holds.resume(visit.path("id"), why=visit.why)
    return visit.done(f"The pause has ended{freed(resumed.jobs)}.", back=visit.back("/gates"))


@room.command("/gates/breakers/{name:path}/open", confirm="Open the breaker {name}? Jobs behind it will wait.")
async def open_breaker(visit: Visit) -> Response:
    """Hold all jobs behind a breaker, for a while or until it is closed."""
    opened = await visit.desk.holds.open_breaker(
        visit.path("name"), for_=visit.field("for").strip() or None, why=visit.why
    )
    end = "until it is closed" if opened.until is None else f"until {opened.until:%Y-%m-%d %H:%M:%S} UTC"
    return visit.done(f"Breaker {opened.name} is open {end}.", back="/gates")


@room.command("/gates/breakers/{name:path}/close", confirm="Close the breaker {name}? Jobs pass slowly at first.")
async def close_breaker(visit: Visit) -> Response:
    """Let jobs through again."""
    closed = await visit.desk.holds.close_breaker(visit.path("name"), why=visit.why)
    return visit.done(f"Breaker {closed.name} is closed; jobs pass slowly at first.", back="/gates")


def freed(jobs: int) -> str:
    """The end of a sentence: how many jobs became ready when a pause ended; ready jobs are not counted."""
    return f"; {some(jobs, 'held job')} became ready" if jobs else ""


async def known_limits(visit: Visit) -> Limits:
    """The limits of each kind: those of the app's code, if this desk has it, else as workers have stored them."""
    stored = await visit.shared("limits", visit.desk.limits, _FRESH_SECONDS)
    app = visit.frame.app
    return stored if app is None else stored | {name: record.limits for name, record in app.kind_records.items()}


def _breaker_row(view: BreakerView, kinds: Limits, history: Sequence[AuditEntry]) -> BreakerRow:
    users = {
        kind: limit
        for kind, limits in kinds.items()
        for limit in limits
        if isinstance(limit, BreakerLimit) and limit.name == view.name
    }
    own = [entry for entry in history if entry.details.get("breaker") == view.name]
    return BreakerRow(
        view=view,
        declared=next(iter(users.values()), None),
        kinds=tuple(sorted(users)),
        history=tuple(own[:_HISTORY_ENTRIES_PER_BREAKER]),
    )


def _budget_rows(spent: Sequence[Spent], kinds: Limits) -> list[BudgetRow]:
    amounts = {one.name: one for one in spent}
    declared: dict[str, list[tuple[str, BudgetLimit]]] = {}
    for kind, limits in kinds.items():
        for limit in limits:
            if isinstance(limit, BudgetLimit):
                declared.setdefault(limit.name, []).append((kind, limit))
    rows = []
    for name in sorted({*amounts, *declared}):
        known = declared.get(name, [])
        windows = [_window(name, window, amounts, [budget for _, budget in known]) for window in _WINDOWS]
        kept = [window for window in windows if window.limit is not None or not known]
        rows.append(BudgetRow(name=name, windows=tuple(kept), kinds=tuple(sorted(kind for kind, _ in known))))
    return rows


def _window(name: str, window: str, amounts: dict[str, Spent], budgets: Sequence[BudgetLimit]) -> Window:
    limits = [limit for budget in budgets if (limit := getattr(budget, window)) is not None]
    spent = getattr(amounts[name], window) if name in amounts else 0.0
    return Window(span=_SPANS[window], spent=spent, limit=min(limits, default=None))


async def _running(visit: Visit) -> dict[str, int]:
    """How many jobs of each kind run now."""
    views = await visit.shared(("kinds", "1h"), lambda: visit.desk.kinds("1h"))
    return {view.name: view.running for view in views}


def _limit_rows(kinds: Limits, running: Mapping[str, int]) -> list[LimitRow]:
    """Declared rates and slots, by kind."""
    rows = []
    for kind, limits in sorted(kinds.items()):
        for limit in limits:
            used = None
            if isinstance(limit, RateLimit):
                what = f"{limit.n:,} starts in {short_span(limit.per)}{', spread evenly' if limit.spread else ''}"
            elif isinstance(limit, SlotLimit):
                what = f"{limit.n:,} at a time"
                used = None if limit.by else _in_use(limit, kind, kinds, running)
            else:
                continue
            name = limit.name or kind
            rows.append(LimitRow(kind=kind, name=name, what=what, by=limit.by, slots=limit.n, used=used))
    return rows


def gates_of(kind: str, limits: Sequence[DeclaredLimit]) -> list[str]:
    """The gates that a job of the kind must pass before it starts, in words."""
    rates = [f"{row.what}{f', for each {row.by}' if row.by else ''}" for row in _limit_rows({kind: tuple(limits)}, {})]
    breakers = [f"breaker {limit.name}" for limit in limits if isinstance(limit, BreakerLimit)]
    budgets = sorted({limit.name for limit in limits if isinstance(limit, BudgetLimit)})
    return [*rates, *breakers, *(f"budget {name}" for name in budgets)]


def _in_use(slots: SlotLimit, owner: str, kinds: Limits, running: Mapping[str, int]) -> int:
    """The slots in use: one for each running job of the kinds that share them."""
    if slots.name is None:
        return running.get(owner, 0)
    sharing = [
        kind
        for kind, limits in kinds.items()
        if any(isinstance(each, SlotLimit) and each.name == slots.name and not each.by for each in limits)
    ]
    return sum(running.get(name, 0) for name in sharing)
