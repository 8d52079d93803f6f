"""The notice that a rule would send now, without sending it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from perdure.clock import SystemClock
from perdure.domain.alerts.alert import Cause
from perdure.domain.alerts.quiet import quiet_until
from perdure.domain.alerts.rule import AlertRule, When
from perdure.domain.jobs.states import JobState
from perdure.operate.alerts.looks import LOOKS
from perdure.operate.alerts.memory import GROUPS_KEPT, Memory
from perdure.operate.alerts.sending import new_id
from perdure.operate.alerts.world import JOBS_COUNTED, World
from perdure.policy.alerts.following import NoticeAlerts, follow
from perdure.policy.alerts.wording import draft
from perdure.storage.port import Store
from perdure.storage.records import JobFilter

LOOKED_BACK: Final = timedelta(hours=1)
"""How far back a preview looks for momentary events, such as deaths."""
_FIRES_PER_LOOK: Final = 500


class AlertPreview(Struct, frozen=True, kw_only=True):
    """What a rule finds now, and the notice that it would send; no title: it would send none.

    `quiet_until`: its quiet hours would hold the notice back until then.
    """

    rule: AlertRule
    causes: tuple[Cause, ...]
    title: str | None
    body: str | None
    quiet_until: datetime | None


async def preview(store: Store, rule: AlertRule) -> AlertPreview:
    """Look once with this rule; deaths and missed times are those of the last hour."""
    now = await store.now()
    since = now - LOOKED_BACK
    memory = Memory(looked_at=since)
    world = World(store, SystemClock(), now, memory)
    world.failures = memory.learn_failures(await store.recent_failures(since, GROUPS_KEPT), now, since)
    world.missed = memory.learn_missed(await store.missed_fires(since, _FIRES_PER_LOOK))
    if rule.when is When.DEATHS and rule.within is not None:
        memory.deaths = {now.isoformat(): await _died(store, now - rule.within)}
    causes = await LOOKS[rule.when](rule, world)
    alerts = follow(replace(rule, lasting=timedelta(0)), {cause.key: cause for cause in causes}, (), now, new_id)
    words = draft(rule, NoticeAlerts(tuple(alerts), ()), now) if alerts else None
    return AlertPreview(
        rule=rule,
        causes=tuple(causes),
        title=None if words is None else words.title,
        body=None if words is None else words.body,
        quiet_until=quiet_until(rule.quiet, now),
    )


async def _died(store: Store, since: datetime) -> dict[str, int]:
    """How many dead letters of each kind have come since then."""
    which = JobFilter(states=frozenset({JobState.DEAD}), finished_after=since)
    return {tally.kind: tally.jobs for tally in await store.count(which, ("kind",), JOBS_COUNTED) if tally.kind}
