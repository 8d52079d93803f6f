"""A notice as channels carry it: a line, a text, and a document for programs."""

from __future__ import annotations

import os
from typing import Any, Final

import msgspec

from perdure.domain.alerts.alert import Notice, NoticeSort
from perdure.domain.alerts.rule import AlertSeverity
from perdure.policy.alerts.wording import one_line

DESK_VARIABLE: Final = "PERDURE_DESK_URL"
"""Where the desk is, for links in notices; without it they have none."""
_MARKS: Final = {AlertSeverity.CRITICAL: "CRITICAL", AlertSeverity.WARNING: "WARNING", AlertSeverity.INFO: "INFO"}


def subject(notice: Notice) -> str:
    """The one-line summary."""
    mark = "OVER" if notice.sort is NoticeSort.RECOVERY else _MARKS[notice.severity]
    return one_line(f"[{mark}] {notice.title}")


def text(notice: Notice) -> str:
    """The notice as plain text."""
    link = link_of(notice)
    return f"{notice.body}\nDesk: {link}" if link else notice.body


def document(notice: Notice) -> bytes:
    """The notice as JSON."""
    fields: dict[str, Any] = {
        "id": notice.id,
        "sort": notice.sort,
        "rule": notice.rule,
        "severity": notice.severity,
        "title": notice.title,
        "body": notice.body,
        "alerts": notice.alerts,
        "count": notice.count,
        "at": notice.at,
        "url": link_of(notice),
    }
    return msgspec.json.encode(fields)


def link_of(notice: Notice) -> str | None:
    """The page of the desk that shows more."""
    desk = os.environ.get(DESK_VARIABLE, "").rstrip("/")
    return f"{desk}{notice.path}" if desk else None
