"""Jobs that need a person: dead, without a handler, over budget, or with a question."""

from __future__ import annotations

from datetime import datetime, timedelta
from shlex import quote as shell_word
from typing import Final
from urllib.parse import quote

from perdure.domain.jobs.states import JobState, Reason
from perdure.operate.attention.need import Need
from perdure.operate.commands.approvals import who_asks
from perdure.operate.search import format_search
from perdure.operate.views.failure_groups import FailureGroup, groups_page
from perdure.operate.wording import listed, roughly, some
from perdure.storage.operate.diagnosis import PausedJobs, Severity
from perdure.storage.port import Store
from perdure.storage.records import JobFilter

_JOBS_LOOKED_AT: Final = 10_000
_GROUPS_SHOWN: Final = 5
_QUESTIONS_SHOWN: Final = 200
_EVERYTHING: Final = JobFilter()
_DEAD: Final = JobFilter(states=frozenset({JobState.DEAD}))
_HELD: Final = frozenset({Reason.UNKNOWN_KIND, Reason.BUDGET_EXCEEDED})
_URGENT_WITHIN: Final = timedelta(hours=24)


async def dead_letters(store: Store, now: datetime) -> list[Need]:
    """The groups of dead letters that failed last; of these the one with the most failed attempts today comes first."""
    page = await groups_page(store, _DEAD, _GROUPS_SHOWN, None)
    groups = sorted(page.groups, key=lambda group: group.failures, reverse=True)
    needs = [_dead(group, now) for group in groups if group.jobs]
    if page.next is not None:
        needs.append(
            Need(
                severity=Severity.WARNING,
                about="dead letters",
                name="",
                subject="Other dead letters",
                what="failed before these",
                path="/dead",
                label="See all",
                cli="perdure dead groups",
            )
        )
    return needs


async def held_back(store: Store, now: datetime) -> list[Need]:  # noqa: ARG001 - all looks are called alike
    """Jobs without a handler, and jobs whose budget is spent."""
    return [
        _without_handler(held) if held.reason == Reason.UNKNOWN_KIND else _without_money(held)
        for held in await store.paused(_HELD, _JOBS_LOOKED_AT)
    ]


async def approvals(store: Store, now: datetime) -> list[Need]:
    """Questions that are not answered yet."""
    asked = await who_asks(store, _EVERYTHING, _QUESTIONS_SHOWN)
    if not asked:
        return []
    ends = min((one.until for one in asked if one.until is not None), default=None)
    soon = ends is not None and ends - now < _URGENT_WITHIN
    return [
        Need(
            severity=Severity.PROBLEM if soon else Severity.WARNING,
            about="approval",
            name="",
            subject=some(len(asked), "approval"),
            what=f"{'waits' if len(asked) == 1 else 'wait'}: "
            + listed((f"{one.name} of {one.job.kind}" for one in asked), most=3),
            detail="" if ends is None else f"the first is refused by its time limit in {roughly(ends - now)}",
            since=min(one.job.since for one in asked),
            path="/approvals",
            label="Answer",
            cli="perdure approvals",
        )
    ]


def _dead(group: FailureGroup, now: datetime) -> Need:
    word = group.error_type.rpartition(".")[2]
    seen = "new today, last" if group.is_new else "last"
    return Need(
        severity=Severity.PROBLEM if now - group.last_at < _URGENT_WITHIN else Severity.WARNING,
        about="dead letters",
        name=group.fingerprint,
        subject=f"{'at least ' if group.jobs_capped else ''}{group.jobs:,} {group.kind}",
        what="died:",
        quote=f"{word}: {group.message}" if group.message else word,
        detail=f"{seen} {roughly(now - group.last_at)} ago, {some(group.failures, 'failed attempt')} in 24 hours",
        since=group.first_at,
        path=f"/dead/{quote(group.fingerprint, safe='')}",
        label="See group",
        act=f"/dead/{quote(group.fingerprint, safe='')}/probe",
        act_label="Requeue one as a probe",
        cli=f"perdure dead list --group {group.fingerprint}",
    )


def _without_handler(held: PausedJobs) -> Need:
    waiting = JobFilter(kind=held.kind, states=frozenset({JobState.PAUSED}))
    return Need(
        severity=Severity.WARNING,
        about="unknown kind",
        name=held.kind,
        subject=f"Kind {held.kind}",
        what=f"has no handler in any worker: {some(held.jobs, 'job')} {'waits' if held.jobs == 1 else 'wait'}",
        detail="after 24 hours without a handler they are dead",
        since=held.since,
        path=f"/jobs?q={quote(format_search(waiting))}",
        label="See jobs",
        cli=f"perdure jobs list --kind {shell_word(held.kind)} --state paused",
    )


def _without_money(held: PausedJobs) -> Need:
    return Need(
        severity=Severity.WARNING,
        about="budget",
        name=held.note or held.kind,
        subject="A budget",
        what=f"is spent: {some(held.jobs, held.kind + ' job')} {'waits' if held.jobs == 1 else 'wait'}",
        detail=held.note or "",
        since=held.since,
        path="/gates",
        label="See gates",
        cli=f"perdure jobs list --kind {shell_word(held.kind)} --state paused",
    )
