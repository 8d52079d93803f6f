"""What each type of rule looks for: turns views of the desk into causes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from shlex import quote as shell_word
from typing import Final
from urllib.parse import quote

from perdure.domain.alerts.alert import Cause
from perdure.domain.alerts.rule import ALERT_KIND, ALERT_QUEUE, AlertRule, When
from perdure.domain.duration import format_duration
from perdure.domain.operate.statistics import Group
from perdure.operate.alerts.world import World
from perdure.operate.attention.need import Need
from perdure.operate.wording import roughly, some
from perdure.storage.operate.diagnosis import Severity

_DEFAULT_WITHIN: Final = timedelta(minutes=5)
_WHOLE_BUDGET_SHARE: Final = 1.0

Look = Callable[[AlertRule, World], Awaitable[list[Cause]]]


async def job_died(rule: AlertRule, world: World) -> list[Cause]:
    """Jobs that died since the last look, by group of failures."""
    return [
        Cause(
            key=died.fingerprint,
            title=f"{died.kind} died: {_error(died.error_type, died.message)}",
            path=f"/dead/{quote(died.fingerprint, safe='')}",
            cli=f"perdure dead list --group {died.fingerprint}",
            passes=True,
            happened=died.deaths,
        )
        for died in world.failures
        if died.deaths and died.kind != ALERT_KIND and rule.kind in {None, died.kind}
    ]


async def new_error(rule: AlertRule, world: World) -> list[Cause]:
    """New groups of failures, fatal or not."""
    return [
        Cause(
            key=died.fingerprint,
            title=f"{died.kind} fails in a new way: {_error(died.error_type, died.message)}",
            path=f"/dead/{quote(died.fingerprint, safe='')}",
            cli=f"perdure dead list --group {died.fingerprint}",
            passes=True,
        )
        for died in world.failures
        if died.is_new and died.kind != ALERT_KIND and rule.kind in {None, died.kind}
    ]


async def deaths(rule: AlertRule, world: World) -> list[Cause]:
    """Kinds with too many deaths within a time."""
    within = rule.within or _DEFAULT_WITHIN
    found = world.memory.died_within(within, rule.kind, world.now)
    return [
        Cause(
            key=kind,
            title=f"{some(number, kind + ' job')} died within {format_duration(within)}",
            detail=f"the limit is {rule.limit or 0:,.0f}",
            path="/dead",
            cli=f"perdure dead groups --kind {shell_word(kind)}",
        )
        for kind, number in found.items()
        if kind != ALERT_KIND and number >= (rule.limit or 1)
    ]


async def failure_share(rule: AlertRule, world: World) -> list[Cause]:
    """Kinds or queues with too large a share of failed attempts."""
    found = []
    for group in await world.attempts(rule.within or _DEFAULT_WITHIN, "queue" if rule.queue else "kind"):
        share = group.total.failure_share
        judged = group.total.succeeded + group.total.failed
        if _is_meant(rule, group) and share is not None and judged >= rule.least and share >= (rule.limit or 0):
            found.append(
                Cause(
                    key=_name(group),
                    title=f"{share:.0%} of {_name(group)} attempts fail",
                    detail=f"{group.total.failed:,} of {judged:,} within "
                    f"{format_duration(rule.within or _DEFAULT_WITHIN)}; the limit is {rule.limit or 0:.0%}",
                    path=_page(group),
                    cli="perdure stats",
                )
            )
    return found


async def depth(rule: AlertRule, world: World) -> list[Cause]:
    """Queues in which too many jobs are ready."""
    limit = int(rule.limit or 1)
    return [
        Cause(
            key=tally.queue,
            title=f"Queue {tally.queue} has {'at least ' if tally.capped else ''}{some(tally.jobs, 'ready job')}",
            detail=f"the limit is {limit:,}",
            path=f"/queues/{quote(tally.queue, safe='')}",
            cli=f"perdure jobs list --queue {shell_word(tally.queue)} --state ready",
        )
        for tally in await world.ready(limit)
        if tally.queue is not None and rule.queue in {None, tally.queue} and tally.jobs >= limit
    ]


async def oldest(rule: AlertRule, world: World) -> list[Cause]:
    """Queues whose oldest ready job waits for too long."""
    limit = timedelta(seconds=rule.limit or 0)
    return [
        Cause(
            key=queue,
            title=f"The oldest job of queue {queue} waits for {roughly(world.now - since)}",
            detail=f"the limit is {format_duration(limit)}",
            path=f"/queues/{quote(queue, safe='')}",
            cli=f"perdure jobs list --queue {shell_word(queue)} --state ready",
        )
        for queue, since in (await world.oldest()).items()
        if rule.queue in {None, queue} and world.now - since >= limit
    ]


async def wait_p95(rule: AlertRule, world: World) -> list[Cause]:
    """Queues or kinds whose jobs wait for too long before they start."""
    found = []
    for group in await world.attempts(rule.within or _DEFAULT_WITHIN, "kind" if rule.kind else "queue"):
        wait = group.total.wait
        if (
            _is_meant(rule, group)
            and wait.count >= rule.least
            and wait.p95 is not None
            and wait.p95 >= (rule.limit or 0)
        ):
            found.append(
                Cause(
                    key=_name(group),
                    title=f"One in twenty jobs of {_name(group)} waits for {wait.p95:.1f} s or more",
                    detail=f"{wait.count:,} starts within {format_duration(rule.within or _DEFAULT_WITHIN)}; "
                    f"the limit is {rule.limit or 0:g} s",
                    path=_page(group),
                    cli="perdure stats",
                )
            )
    return found


async def schedule_missed(rule: AlertRule, world: World) -> list[Cause]:
    """Schedules that are overdue or cannot be read, and missed times."""
    needs = [_cause(need, f"late {need.name}") for need in await world.needs("schedules")]
    passed: dict[str, list[str]] = {}
    for fire in world.missed:
        passed.setdefault(fire.schedule, []).append(f"{fire.nominal_at:%Y-%m-%d %H:%M:%S} UTC")
    lost = [
        Cause(
            key=f"missed {name}",
            title=f"Schedule {name} missed a time: no process fired it",
            detail=f"the last was {max(times)}",
            path=f"/schedules/{quote(name, safe='')}",
            cli=f"perdure schedules show {shell_word(name)}",
            passes=True,
            happened=len(times),
        )
        for name, times in passed.items()
    ]
    return [cause for cause in (*needs, *lost) if rule.about in {None, cause.key.partition(" ")[2]}]


async def budget(rule: AlertRule, world: World) -> list[Cause]:
    """Budgets with too large a spent share."""
    limit = rule.limit or _WHOLE_BUDGET_SHARE
    found = []
    for one in await world.budgets():
        for window, most in one.limits if rule.about in {None, one.name} else ():
            spent = await world.spent(one.name, window)
            if spent >= limit * most:
                words = "is spent" if spent >= most else f"is spent to {spent / most:.0%}"
                found.append(
                    Cause(
                        key=f"{one.name} {format_duration(window)}",
                        title=f"Budget {one.name} {words}",
                        detail=f"{spent:g} of {most:g} within {format_duration(window)}",
                        path="/gates",
                        cli=f"perdure spent {shell_word(one.name)}",
                    )
                )
    return found


async def breaker_opened(rule: AlertRule, world: World) -> list[Cause]:
    """Breakers that are not closed."""
    return [_cause(need) for need in await world.needs("breakers") if rule.about in {None, need.name}]


async def worker_lost(rule: AlertRule, world: World) -> list[Cause]:
    """Workers that are silent, or were declared dead recently."""
    return [_cause(need) for need in await world.needs("workers") if rule.about in {None, need.name}]


async def no_worker(rule: AlertRule, world: World) -> list[Cause]:
    """Queues with ready jobs and no worker."""
    return [
        _cause(need)
        for need in await world.needs("queues")
        if need.severity is Severity.PROBLEM and need.name != ALERT_QUEUE and rule.queue in {None, need.name}
    ]


async def doctor(rule: AlertRule, world: World) -> list[Cause]:
    """Problems of the database itself."""
    return [_cause(need) for need in await world.database() if rule.about in {None, need.name}]


LOOKS: Final[dict[When, Look]] = {
    When.JOB_DIED: job_died,
    When.NEW_ERROR: new_error,
    When.DEATHS: deaths,
    When.FAILURE_SHARE: failure_share,
    When.DEPTH: depth,
    When.OLDEST: oldest,
    When.WAIT_P95: wait_p95,
    When.SCHEDULE_MISSED: schedule_missed,
    When.BUDGET: budget,
    When.BREAKER_OPENED: breaker_opened,
    When.WORKER_LOST: worker_lost,
    When.NO_WORKER: no_worker,
    When.DOCTOR: doctor,
}


def _cause(need: Need, key: str | None = None) -> Cause:
    return Cause(key=key or need.name, title=need.sentence, detail=need.detail, path=need.path, cli=need.cli)


def _error(error_type: str, message: str) -> str:
    word = error_type.rpartition(".")[2]
    return f"{word}: {message}" if message else word


def _is_meant(rule: AlertRule, group: Group) -> bool:
    if group.kind == ALERT_KIND:
        return False
    return rule.queue in {None, group.queue} and rule.kind in {None, group.kind}


def _name(group: Group) -> str:
    return group.kind or f"queue {group.queue}"


def _page(group: Group) -> str:
    return f"/queues/{quote(group.queue, safe='')}" if group.queue else f"/kinds/{quote(group.kind or '', safe='')}"
