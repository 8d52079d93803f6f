"""Schedules that do not fire."""

from __future__ import annotations

from datetime import datetime
from shlex import quote as shell_word
from urllib.parse import quote

from perdure.domain.schedule import ScheduleView
from perdure.operate.attention.need import Need
from perdure.operate.health.schedule_health import complaint, is_forgotten, is_overdue
from perdure.operate.wording import roughly
from perdure.storage.operate.diagnosis import Severity
from perdure.storage.port import Store


async def late_schedules(store: Store, now: datetime) -> list[Need]:
    """Schedules that are overdue, or cannot be read."""
    found: list[Need] = []
    for view in await store.schedules():
        unreadable = complaint(view)
        if unreadable is not None:
            found.append(_need(view, Severity.PROBLEM, "cannot be read, and does not fire:", unreadable))
        elif view.next_at is not None and is_overdue(view, now):
            gone = is_forgotten(view, now)
            late = f"is overdue by {roughly(now - view.next_at)}"
            detail = (
                "no process has declared it for a day: delete it if the code has dropped it"
                if gone
                else "no process fires it: start a worker of the app that declares it"
            )
            found.append(_need(view, Severity.WARNING if gone else Severity.PROBLEM, late, "", detail))
    return found


def _need(view: ScheduleView, severity: Severity, what: str, words: str = "", detail: str = "") -> Need:
    return Need(
        severity=severity,
        about="schedule",
        name=view.name,
        subject=f"Schedule {view.name}",
        what=what,
        quote=words,
        detail=detail,
        since=view.next_at,
        path=f"/schedules/{quote(view.name, safe='')}",
        label="History",
        cli=f"perdure schedules show {shell_word(view.name)}",
    )
