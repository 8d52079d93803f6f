"""Pages that are rendered on the server, with one look for all systems.

A template extends `base.html` and fills the blocks `title` and `main`. All text is escaped. An element with an id and
`data-refresh="30"` loads itself again every 30 seconds; a form with `data-action` is sent without leaving the page,
unless `data-next` says where to go then (`static/system.js`). `{{ job.id | on_desk }}` is an id that leads to the job's
page on the desk.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import quote

import msgspec
from jinja2 import ChoiceLoader, Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse

_KIT: Final = Path(__file__).parent
STATIC: Final = _KIT / "static"
DESK: Final = "/desk"
"""Where the desk is served beside every system."""
_SHORT_TEXT_CHARACTERS: Final = 80


class Link(msgspec.Struct, frozen=True):
    """An entry of the navigation."""

    title: str
    path: str
    count: int | None = None
    is_urgent: bool = False


class Pages:
    """The templates of one system: `pages.render("list.html", here="/", rows=rows)`.

    `jobs` is the search that finds the system's jobs on the desk, such as `queue:mail`.
    """

    def __init__(self, title: str, templates: Path, links: Sequence[Link], *, jobs: str = "") -> None:
        self._title = title
        self._links = links
        self._desk = f"{DESK}/jobs?q={quote(jobs)}" if jobs else f"{DESK}/"
        loader = ChoiceLoader([FileSystemLoader(templates), FileSystemLoader(_KIT / "templates")])
        self._environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
        self._environment.filters |= {"instant": instant, "short": short, "on_desk": on_desk}

    def render(self, template: str, *, here: str, links: Sequence[Link] | None = None, **values: Any) -> HTMLResponse:
        """The page of a template; `here` is the path of the navigation entry that it belongs to."""
        found = self._environment.get_template(template)
        shown = self._links if links is None else links
        return HTMLResponse(found.render(system=self._title, links=shown, here=here, desk=self._desk, **values))


def instant(value: datetime | str | None) -> Markup:
    """A time that the browser shows in the viewer's zone, with the UTC in a tooltip; a dash for None."""
    if value is None:
        return Markup('<span class="faint">&ndash;</span>')
    at = datetime.fromisoformat(value) if isinstance(value, str) else value
    text = at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(at.astimezone(UTC).isoformat(), text, text)


def on_desk(name: str, by: Literal["id", "ref"] = "id", *, shown: str | None = None) -> Markup:
    """The id or reference of a job, which leads to the job on the desk; `shown` is what people read instead of it."""
    path = f"{DESK}/jobs/{quote(name, safe='')}" if by == "id" else f"{DESK}/jobs?q={quote(f'ref:{name}')}"
    return Markup('<a class="mono" href="{}" title="on the desk: timeline, attempts, log">{}</a>').format(
        path, shown or name
    )


def short(text: str | None, most: int = _SHORT_TEXT_CHARACTERS) -> Markup:
    """A text cut to size, with the whole of it in a tooltip."""
    if not text:
        return Markup('<span class="faint">&ndash;</span>')
    if len(text) <= most:
        return escape(text)
    return Markup('<span title="{}">{}…</span>').format(text, text[: most - 1])
