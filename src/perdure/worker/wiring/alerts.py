"""Makes the alert watch of a worker, with the app's rules and the budgets of its kinds."""

from __future__ import annotations

from uuid import uuid4

from perdure.operate.alerts.declared import DeclaredAlerts
from perdure.storage.operate.alerts import BudgetLimits
from perdure.upkeep.alert_watch import AlertWatch
from perdure.worker.surroundings import Surroundings


def alert_watch_for(around: Surroundings, worker: str, declared: DeclaredAlerts) -> AlertWatch:
    """The alert watch; it becomes a candidate for the lead when it runs."""
    budgets = {budget.name: budget for kind in around.kinds.values() for budget in kind.budgets.values()}
    return AlertWatch(
        around.store,
        around.emitter,
        around.clock,
        holder=f"{worker} {uuid4().hex[:8]}",
        declared=declared,
        budgets=[BudgetLimits(name, budget.limits) for name, budget in sorted(budgets.items())],
        on_stored=around.hooks.stored,
    )
