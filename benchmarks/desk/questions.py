"""What is asked of the desk: every page, and the lists and figures of the API."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from tests.support.web.desk_pages import PAGES

from perdure.surfaces.api.filters import write_cursor
from perdure.surfaces.api.handlers.jobs.jobs import JobsQuery

_SEARCHES: Final = {
    "deep": "",
    "dead": "state:dead",
    "dead of a kind": "state:dead kind:kind_49",
    "finished": "state:succeeded,cancelled",
    "retrying": "state:retrying",
    "waiting": "state:waiting,paused,scheduled",
    "active": "state:scheduled,ready,running,retrying,waiting,paused",
    "queue": "queue:payments",
    "tag": "tag:vip",
    "since": "since:1h",
    "argument": "args.user.id=77",
    "argument, text": "args.url~orders/77",
    "error": "error~timeout",
}
_SPANS: Final = ("1d", "7d")
_API: Final = {
    "jobs": "/jobs?limit=50",
    "jobs, deep": "/jobs?limit=50&cursor={deep_cursor}",
    "jobs, dead": "/jobs?limit=50&state=dead",
    "jobs, kind": "/jobs?limit=50&kind=kind_07",
    "job": "/jobs/{dead_job}",
    "attempts": "/jobs/{dead_job}/attempts",
    "why": "/jobs/{waiting_job}/why",
    "counts by state": "/counts?by=state",
    "overview": "/overview",
    "attention": "/attention",
    "failure groups": "/failure-groups",
    "failure group": "/failure-groups/{group}",
    "suggestions": "/suggestions?text=kind:",
    "statistics 1h": "/statistics?span=1h",
    "statistics 1d by queue": "/statistics?span=1d&by=queue",
    "statistics 7d by queue": "/statistics?span=7d&by=queue",
    "statistics 1h by kind": "/statistics?span=1h&by=kind",
    "queues": "/queues",
    "kinds": "/kinds",
    "workers": "/workers",
    "approvals": "/approvals",
    "audit": "/audit",
}
_REFUSED: Final = {"page jobs-not-understood": 400, "page not-found": 404}
_ABSENT: Final = frozenset(
    f"page {name}" for name in ("schedule", "schedule-backfill", "schedule-change", "alert-preview", "alert-change")
)
"""Pages of things that this database does not have: they are answered as not found."""


def expected_status(name: str) -> int:
    """With which status a question must be answered, so that no refusal counts as a fast page."""
    return 404 if name in _ABSENT else _REFUSED.get(name, 200)


def questions(names: dict[str, str]) -> dict[str, str]:
    """Names and paths."""
    known = _Known({**names, "deep_cursor": write_cursor(["jobs", JobsQuery().conditions], names["deep"]) or ""})
    asked = {f"page {name}": path.format_map(known) for name, path in PAGES.items()}
    asked |= {f"page jobs: {name}": f"/jobs?q={quote(text)}" for name, text in _SEARCHES.items()}
    asked["page jobs: deep"] += f"&before={names['deep']}"
    asked |= {
        f"page {name} {span}": f"{PAGES[name]}?span={span}"
        for name in ("overview", "queues", "kinds")
        for span in _SPANS
    }
    return asked | {f"api {name}": f"/api/v1{path.format_map(known)}" for name, path in _API.items()}


class _Known(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return f"no-{name}"
