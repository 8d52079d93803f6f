"""One evaluation of all rules: reads the alert book, and writes a page back.

If a view cannot be read, the rules that need it do not change: their alerts neither open nor end.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from perdure.clock import Clock
from perdure.domain.alerts.alert import Alert, Cause, Notice
from perdure.domain.alerts.rule import AlertRule, RuleView, When
from perdure.domain.jobs.job import NewJob
from perdure.domain.jobs.states import JobState
from perdure.errors import StoreUnavailable
from perdure.operate.alerts.incidents import Incidents
from perdure.operate.alerts.looks import LOOKS
from perdure.operate.alerts.memory import GROUPS_KEPT, Memory, read_memory
from perdure.operate.alerts.sending import new_id, notice_to
from perdure.operate.alerts.world import World
from perdure.policy.alerts.broken_channels import report_channels
from perdure.policy.alerts.following import follow, is_done, next_notice, reported, rest
from perdure.policy.alerts.incidents import Incident
from perdure.policy.alerts.wording import draft
from perdure.storage.operate.alerts import AlertBook, AlertPage
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page

CAUSES_PER_RULE: Final = 1_000
"""The most causes of one rule that are followed; beyond that, one alert stands for the whole rule."""
LONGEST_THROTTLE: Final = timedelta(days=1)
_FIRES_PER_LOOK: Final = 500
_SORTS: Final = frozenset(When)
_GONE: Final = frozenset({JobState.DEAD, JobState.CANCELLED})

_log = logging.getLogger("perdure.alerts")


class Evaluated(Struct, frozen=True):
    """What one evaluation did: how many alerts are open, and the notices that went out.

    `written` False: another process has evaluated meanwhile, and nothing was changed.
    """

    rules: int = 0
    open: int = 0
    notices: tuple[Notice, ...] = ()
    written: bool = True


class Evaluation:
    """Evaluates all rules, repeatedly."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._complaints: dict[str, str] = {}

    async def run(self) -> Evaluated:
        """Evaluate once, and write the results."""
        book = await self._store.alert_book(LONGEST_THROTTLE)
        memory = read_memory(book.memory)
        world = World(self._store, self._clock, book.now, memory)
        await _read_news(world, book.rules)
        draft_page = _Page(book, Incidents(memory.incidents, (record.channel for record in book.channels)))
        awake = [view.rule for view in book.rules if not view.is_paused(book.now)]
        for rule in awake:
            if memory.sorts.get(rule.name, rule.when) != rule.when:
                draft_page.end(rule.name)
            memory.sorts[rule.name] = rule.when
            self._complain(rule.name, await draft_page.look(rule, world))
        memory.lasting = {rule.name: memory.lasting[rule.name] for rule in awake if rule.name in memory.lasting}
        there = {view.rule.name: memory.sorts.get(view.rule.name, view.rule.when) for view in book.rules}
        for name, sort in memory.sorts.items():
            if name not in there and sort in _SORTS:  # one of a newer release is left to its own workers
                draft_page.end(name)
        memory.sorts = there
        lost = await self._lost(book)
        draft_page.report_channels(memory, {channel for _, channel, _ in lost})
        memory.incidents = draft_page.end_incidents()
        memory.forget(book.now)
        text = msgspec.json.encode(memory).decode()
        page = draft_page.page(text, lost)
        if not page.alerts and not page.notices and not page.lost and not _is_worth(book, memory, text):
            return Evaluated(len(book.rules), draft_page.open)
        written = await self._store.write_alerts(page)
        if written and page.jobs:
            self._store.ring({job.queue for job in page.jobs})
        return Evaluated(len(book.rules), draft_page.open, page.notices if written else (), written)

    def _complain(self, rule: str, complaint: str | None) -> None:
        """Log why a rule could not be evaluated, once until it works again."""
        if complaint is None:
            self._complaints.pop(rule, None)
        elif self._complaints.get(rule) != complaint:
            self._complaints[rule] = complaint
            _log.warning("rule %s could not be evaluated: %s", rule, complaint)

    async def _lost(self, book: AlertBook) -> tuple[tuple[str, str, str], ...]:
        """Deliveries whose jobs are dead, cancelled or gone."""
        pending = {one.job_id: (notice_id, one) for notice_id, one in book.deliveries}
        if not pending:
            return ()
        found = await self._store.jobs(JobFilter(ids=tuple(pending)), Page(len(pending)))
        states = {job.id: job.state for job in found}
        return tuple(
            (notice_id, one.channel, one.error or f"its job is {states.get(job_id, 'deleted')}")
            for job_id, (notice_id, one) in pending.items()
            if job_id not in states or states[job_id] in _GONE
        )


class _Page:
    """The page that an evaluation writes, while it is made."""

    def __init__(self, book: AlertBook, incidents: Incidents) -> None:
        self._book = book
        self._incidents = incidents
        self._now = book.now
        self._channels = {record.channel.name for record in book.channels}
        self._live: dict[str, list[Alert]] = {}
        for alert in book.alerts:
            self._live.setdefault(alert.rule, []).append(alert)
        self._after = {alert.id: alert for alert in book.alerts}
        self._changed: list[Alert] = []
        self._done: list[str] = []
        self._notices: list[Notice] = []
        self._jobs: list[NewJob] = []
        self.open = 0

    async def look(self, rule: AlertRule, world: World) -> str | None:
        """Evaluate one rule; returns why it could not be evaluated."""
        try:
            self._follow(rule, await LOOKS[rule.when](rule, world), world)
        except StoreUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - the other rules continue
            return f"{type(error).__name__}: {error}"
        return None

    def _follow(self, rule: AlertRule, causes: list[Cause], world: World) -> None:
        """Open, count, end and report the alerts of a rule that has found these causes."""
        live = self._live.get(rule.name, [])
        found = _lasting(
            rule, causes[:CAUSES_PER_RULE], world.memory, {alert.key for alert in live if alert.is_open}, world
        )
        after = [rest(rule, alert) for alert in follow(rule, found, live, self._now, new_id)]
        to = [channel for channel in rule.to if channel in self._channels]
        notice = next_notice(rule, after, self._book.said_at.get(rule.name, ()), self._now)
        if notice is not None and to:  # without a channel it waits for one
            reported_ids = {alert.id for alert in (*notice.raised, *notice.over)}
            after = [reported(alert, self._now) if alert.id in reported_ids else alert for alert in after]
            sent, jobs = notice_to(draft(rule, notice, self._now), to, self._now, rule.name)
            self._add(self._incidents.begin(sent, rule, notice.raised), jobs)
        self._keep(rule, live, after)

    def end(self, name: str) -> None:
        """End the alerts of a rule that is gone, or looks for something else now, without a notice."""
        for alert in self._live.pop(name, []):
            self._changed.append(replace(alert, closed_at=alert.closed_at or self._now, told_end=True))
            self._done.append(alert.id)
            self._after.pop(alert.id, None)

    def end_incidents(self) -> dict[str, Incident]:
        """Resolve the incidents that are over; those that go on."""
        rules = [view.rule for view in self._book.rules]
        self._notices, jobs = self._incidents.end(self._after, rules, self._notices, self._now)
        self._jobs += jobs
        return self._incidents.open

    def report_channels(self, memory: Memory, dead: set[str]) -> None:
        """Report channels that do not work, through others."""
        rules = [view.rule for view in self._book.rules]
        report = report_channels(memory.broken, self._book.channels, dead, rules, self._now)
        memory.broken = report.broken
        for words, channel in report.notices:
            self._add(*notice_to(words, [channel], self._now))

    def page(self, memory: str, lost: tuple[tuple[str, str, str], ...]) -> AlertPage:
        """All of it."""
        return AlertPage(
            version=self._book.version,
            memory=memory,
            alerts=tuple(self._changed),
            done=tuple(self._done),
            notices=tuple(self._notices),
            jobs=tuple(self._jobs),
            lost=lost,
        )

    def _keep(self, rule: AlertRule, before: Iterable[Alert], after: Iterable[Alert]) -> None:
        known = {alert.id: alert for alert in before}
        for alert in after:
            self.open += alert.is_open
            self._after[alert.id] = alert
            if is_done(rule, alert, self._now):
                self._done.append(alert.id)
                self._changed.append(alert)
                self._after.pop(alert.id)
            elif alert is not known.get(alert.id):
                self._changed.append(alert)

    def _add(self, notice: Notice, jobs: list[NewJob]) -> None:
        self._notices.append(notice)
        self._jobs += jobs


def _lasting(
    rule: AlertRule, causes: Iterable[Cause], memory: Memory, is_open: set[str], world: World
) -> dict[str, Cause]:
    """The causes that have lasted long enough; the others are remembered."""
    found = {cause.key: cause for cause in causes}
    if not rule.lasting:
        memory.lasting.pop(rule.name, None)
        return found
    since = memory.lasting.get(rule.name, {})
    memory.lasting[rule.name] = {
        key: min(since.get(key, world.now), world.now) for key, cause in found.items() if not cause.passes
    }
    waits = memory.lasting[rule.name]
    return {
        key: cause
        for key, cause in found.items()
        if cause.passes or key in is_open or world.now - waits[key] >= rule.lasting
    }


async def _read_news(world: World, rules: Sequence[RuleView]) -> None:
    """Events since the last evaluation, or since the first rule; earlier ones are only remembered."""
    memory = world.memory
    begun = min((view.created_at for view in rules), default=world.now)
    if memory.looked_at is not None and memory.looked_at < begun <= world.now:  # later: the clock was set back since
        memory.looked_at = None
    since = memory.look_from(world.now) or world.now.replace(minute=0, second=0, microsecond=0)
    failures = await world.store.recent_failures(since, GROUPS_KEPT)
    world.failures = memory.learn_failures(failures, world.now, min(begun, world.now))
    if any(view.rule.when is When.SCHEDULE_MISSED for view in rules):
        fires = await world.store.missed_fires(memory.look_from(world.now) or world.now, _FIRES_PER_LOOK)
        world.missed = memory.learn_missed(fires)


def _is_worth(book: AlertBook, memory: Memory, text: str) -> bool:
    """Whether the memory alone justifies a write: not if only the time of the last look changed."""
    before = read_memory(book.memory)
    if before.looked_at is None or memory.looked_at is None:
        return True
    if abs(memory.looked_at - before.looked_at) >= timedelta(seconds=30):
        return True
    before.looked_at = memory.looked_at
    return msgspec.json.encode(before).decode() != text
