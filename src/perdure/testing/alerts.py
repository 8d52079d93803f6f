"""Alerts of an app in a sandbox: declared and evaluated when the test asks for it."""

from __future__ import annotations

from perdure.app.app import App
from perdure.clock import Clock
from perdure.domain.alerts.alert import Notice
from perdure.operate.alerts.evaluation import Evaluation
from perdure.storage.operate.alerts import BudgetLimits
from perdure.storage.port import Store


async def look_for_alerts(app: App, store: Store, clock: Clock) -> tuple[Notice, ...]:
    """Declare the rules and channels of the app's code, and evaluate all rules once."""
    budgets = {budget.name: budget for kind in app.kinds.values() for budget in kind.budgets.values()}
    await store.declare_alerts(
        tuple(app.alerts.rules.values()),
        tuple(app.alerts.channels.values()),
        [BudgetLimits(name, budget.limits) for name, budget in budgets.items()],
    )
    return (await Evaluation(store, clock).run()).notices
