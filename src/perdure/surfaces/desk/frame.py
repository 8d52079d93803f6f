"""The frame of all pages: templates, static files, shared answers, and the rendering of responses."""

from __future__ import annotations

import gzip
import shlex
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote, unquote_plus

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from perdure.app.app import App
from perdure.errors import PerdureError
from perdure.kinds.kind import Registry
from perdure.operate.desk import Desk
from perdure.operate.search import format_search
from perdure.storage.records import JobFilter
from perdure.surfaces.desk import charts
from perdure.surfaces.desk.answers import Answers
from perdure.surfaces.desk.rail import ENTRIES, Badges, count_badges
from perdure.surfaces.desk.static_files import StaticFiles, reads_gzip
from perdure.surfaces.desk.view import documents, numbers, states, text, times, tracebacks
from perdure.surfaces.desk.visit import SAID, SPANS, Visit

_COMPRESSED_BEYOND_CHARACTERS: Final = 500  # bytes
_BADGES_FRESH_SECONDS: Final = 3.0
_THEMES: Final = ("light", "dark")


class About(Struct, frozen=True, kw_only=True):
    """What this desk serves, for its footer. `database` is the URL without secrets.

    `why_read_only` says why every command is refused, if so.
    """

    database: str
    version: str
    engine: str = ""
    why_read_only: Callable[[], str | None] = lambda: None

    @property
    def read_only(self) -> bool:
        """Whether every command is refused."""
        return self.why_read_only() is not None


class Frame:
    """The objects that all pages share."""

    def __init__(
        self,
        *,
        desk_for: Callable[[Request], Desk],
        about: About,
        app: App | None = None,
        fresh_for: float = 1.0,
        live: bool = True,
    ) -> None:
        self.desk_for = desk_for
        self.app = app
        self.kinds: Registry | None = None if app is None else app.kinds
        self.about = about
        self.live = live
        self.answers = Answers(fresh_for)
        self.files = StaticFiles()
        self._environment = environment()

    async def render(
        self, visit: Visit, template: str, *, title: str, status: int, values: Mapping[str, Any]
    ) -> Response:
        """A page as a response; with gzip if the browser accepts it."""
        badges = await self._badges(visit)
        page = self._environment.get_template(template)
        html = page.render(
            {
                **values,
                "layout": "layouts/part.html" if visit.is_part else "layouts/page.html",
                "visit": visit,
                "title": title,
                "url": visit.url,
                "path": visit.own_path,
                "root": visit.request.scope.get("root_path", ""),
                "static": lambda name: f"{visit.request.scope.get('root_path', '')}/static/{self.files.url_name(name)}",
                "about": self.about,
                "who": visit.caller,
                "rail": ENTRIES,
                "badges": badges,
                "spans": SPANS,
                "theme": _theme(visit.request),
                "live": self.live,
                "said": _said(visit.request),
            }
        ).encode("utf-8", "replace")
        headers = {"Cache-Control": "no-store", "Vary": "Accept-Encoding, Cookie, Perdure-Part"}
        if reads_gzip(visit.request) and len(html) > _COMPRESSED_BEYOND_CHARACTERS:
            html = gzip.compress(html, 6)
            headers["Content-Encoding"] = "gzip"
        response = Response(html, status, headers, "text/html; charset=utf-8")
        if SAID in visit.request.cookies and not visit.is_part:
            response.delete_cookie(SAID, path=visit.request.scope.get("root_path", "") or "/")
        return response

    async def _badges(self, visit: Visit) -> Badges:
        """The figures of the rail; an error page has none."""
        try:
            return await self.answers.get("badges", lambda: count_badges(visit.desk), _BADGES_FRESH_SECONDS)
        except PerdureError:
            return Badges()


def environment() -> Environment:
    """The template environment: it escapes everything, fails on undefined names, and shows invisible characters."""
    made = Environment(
        loader=PackageLoader("perdure.surfaces.desk", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(
        number=numbers.number,
        short_number=numbers.short_number,
        amount=numbers.amount,
        rate=numbers.rate,
        share=numbers.share,
        span=numbers.span,
        size=numbers.size,
        moment=times.moment,
        full=times.full,
        ago=times.ago,
        sentence=times.sentence,
        traceback=tracebacks.traceback,
        visible=text.visible,
        short_url=text.short_url,
        piece=lambda name: quote(name, safe=""),
        shell=shlex.quote,
        search_for=lambda **words: format_search(JobFilter(**words)),
        document=documents.document,
        as_document=documents.as_document,
        colour=states.colour,
        charts=charts,
    )
    return made


def _shown(value: Any) -> Any:
    """Make invisible characters visible in every text that a template prints."""
    return text.plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _theme(request: Request) -> str:
    chosen = request.cookies.get("perdure_theme", "")
    return chosen if chosen in _THEMES else "system"


def _said(request: Request) -> str:
    return unquote_plus(request.cookies.get(SAID, ""))
