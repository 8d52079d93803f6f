"""Evaluates the rules of alerts. Every worker stands by; the leader does it.

A process asks for the lead only while there are rules or channels, so that alerts cost nothing without them. Channels
alone count: a test of a channel may be given up before the first rule is made, and must then be shown as failed.
Leadership only avoids work that is done twice: what is written is fenced by the version of the book of alerts. What
the code of this worker's app declares is kept in the database, and declared again from time to time, so that it ends
with the code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final

from perdure.clock import Clock
from perdure.domain.alerts.rule import ALERT_KIND, ALERT_QUEUE
from perdure.events import AlertRaised, Emitter
from perdure.lifecycle.loops.leadership import Leadership
from perdure.lifecycle.loops.loop import Loop
from perdure.operate.alerts.declared import DeclaredAlerts
from perdure.operate.alerts.evaluation import Evaluated, Evaluation
from perdure.operate.alerts.memory import read_memory
from perdure.policy.outage_backoff import OutageLimits
from perdure.storage.operate.alerts import CODE_KEPT, BudgetLimits
from perdure.storage.port import Store

LEAD: Final = "alerts"
_LEASE: Final = timedelta(seconds=3)  # short, because it is not given back: the next leader waits until it ends
_DECLARED_EVERY: Final = CODE_KEPT / 6
_IDLE_WAIT: Final = timedelta(seconds=2)


class AlertWatch(Loop[Evaluated | None]):
    """Looks every second while it leads, and every two seconds for rules and channels while there are none.

    Its constructor takes seven values, of which `holder`, `declared` and `budgets` are facts about the app.
    """

    name = "alert watch"
    interval = timedelta(seconds=1)
    limit = timedelta(seconds=30)

    def __init__(
        self,
        store: Store,
        emitter: Emitter,
        clock: Clock,
        holder: str,
        declared: DeclaredAlerts,
        budgets: Sequence[BudgetLimits] = (),
        on_stored: Callable[[str, str, int], None] = lambda _queue, _kind, _jobs: None,
    ) -> None:
        super().__init__(emitter)
        self._store = store
        self._clock = clock
        self._declared = declared
        self._budgets = budgets
        self._on_stored = on_stored
        self._leadership = Leadership(store, LEAD, holder, emitter, clock, _LEASE)
        self._evaluation = Evaluation(store, clock)
        self._had_work: bool | None = None
        self._declare_at = clock.monotonic()
        self._ask_at = self._declare_at

    async def tick(self) -> Evaluated | None:
        """Evaluate once, if this process leads; None: there are no rules and no channels."""
        await self._declare()
        has_work = bool(await self._store.alert_rules() or await self._store.alert_channels())
        if self._had_work is None:  # incidents that an earlier process has left are resolved, too
            self._had_work = bool(read_memory((await self._store.alert_book(timedelta(0))).memory).incidents)
        if not has_work and not self._had_work:  # after the last rule is gone its alerts must end
            return None
        await self._ask()
        did = await self._evaluation.run() if self._leadership.is_leading else Evaluated(written=False)
        if has_work or did.written:
            self._had_work = has_work
        for notice in did.notices:
            self.emitter.emit(AlertRaised(notice.title, notice.severity, notice.rule or "", notice.count))
            self._on_stored(ALERT_QUEUE, ALERT_KIND, len(notice.deliveries))
        return did

    def next_wait(self, did: Evaluated | None) -> timedelta:
        """Seldom while there are no rules and no channels."""
        return _IDLE_WAIT if did is None else self.interval

    def use_outage(self, limits: OutageLimits) -> None:
        """Apply these limits to the leadership as well."""
        super().use_outage(limits)
        self._leadership.use_outage(limits)

    async def _declare(self) -> None:
        if self._clock.monotonic() < self._declare_at:
            return
        declared = self._declared
        if declared.rules or declared.channels or self._budgets:
            await self._store.declare_alerts(
                tuple(declared.rules.values()), tuple(declared.channels.values()), self._budgets
            )
        self._declare_at = self._clock.monotonic() + _DECLARED_EVERY.total_seconds()

    async def _ask(self) -> None:
        """Ask for the lead, or renew it, when that is due."""
        if self._clock.monotonic() >= self._ask_at:
            wait = self._leadership.next_wait(await self._leadership.tick())
            self._ask_at = self._clock.monotonic() + wait.total_seconds()
