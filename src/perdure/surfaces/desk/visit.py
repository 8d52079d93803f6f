"""One request to a page: its caller, its span, and the desk that handles it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Hashable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from perdure.domain.operate.access import Scope
from perdure.errors import ArgumentError
from perdure.operate.desk import Desk
from perdure.surfaces.access.caller import Caller, caller_of

if TYPE_CHECKING:
    from perdure.surfaces.desk.frame import Frame

T = TypeVar("T")
SPANS: Final = {"1h": "1 h", "1d": "1 d", "7d": "7 d"}
SAID: Final = "perdure_said"  # the cookie that carries one sentence to the next page
_WHY_LIMIT_CHARACTERS: Final = 500
_SENTENCE_LIMIT_CHARACTERS: Final = 600
_SENTENCE_KEPT_SECONDS: Final = 30


class Visit:
    """The request that is passed to pages and commands."""

    def __init__(self, request: Request, frame: Frame, room: str) -> None:
        self.request = request
        self.frame = frame
        self.room = room
        self.caller: Caller = caller_of(request.scope)
        self.desk: Desk = frame.desk_for(request)
        self.form: FormData = FormData()
        self._begun = time.monotonic()

    @property
    def took(self) -> float:
        """How many seconds the response has taken so far. An open page refreshes less often if it is expensive."""
        return time.monotonic() - self._begun

    @property
    def span(self) -> str:
        """The span of time that charts and rates cover: `1h`, `1d` or `7d`."""
        given = self.request.query_params.get("span", "1h")
        if given not in SPANS:
            raise ArgumentError("span", f"must be 1h, 1d or 7d, got {given!r:.40}")
        return given

    @property
    def is_part(self) -> bool:
        """Whether an open page requests only its new content."""
        return self.request.headers.get("perdure-part") == "page"

    @property
    def is_posted(self) -> bool:
        """Whether the page is the response to a form: it cannot be reloaded by its URL."""
        return self.request.method == "POST"

    @property
    def own_path(self) -> str:
        """The path of this page without the prefix, quoted as the browser sent it, so that names in it stay intact."""
        raw = self.request.scope.get("raw_path") or quote(self.request.scope["path"]).encode()
        path = raw.decode("latin-1").removeprefix(self.request.scope.get("root_path", ""))
        return "/" + path.lstrip("/")

    def may(self, scope: str) -> bool:
        """Whether the caller's scope includes this one."""
        if self.frame.about.read_only and scope != Scope.READ:
            return False
        return self.caller.scope.allows(Scope(scope))

    def path(self, name: str) -> str:
        """A part of the path, such as a queue's name."""
        return str(self.request.path_params[name])

    def query(self, name: str, default: str = "") -> str:
        """A parameter of the URL."""
        return self.request.query_params.get(name, default)

    def field(self, name: str, default: str = "") -> str:
        """A field of the form that was posted; browsers end its lines with CRLF."""
        value = self.form.get(name, default)
        return value.replace("\r\n", "\n") if isinstance(value, str) else default

    @property
    def why(self) -> str:
        """The caller's reason for a command."""
        why = self.field("why").strip()
        if len(why) > _WHY_LIMIT_CHARACTERS:
            raise ArgumentError("why", f"has {len(why)} characters, {_WHY_LIMIT_CHARACTERS} are allowed")
        return why

    def url(self, path: str, query: Mapping[str, Any] | None = None, **more: Any) -> str:
        """A URL of this desk: under its prefix, with the span of this page, without empty parameters."""
        given = {**(query or {}), **more}
        if "span" not in given and (span := self.query("span", "1h")) in SPANS and span != "1h":
            given["span"] = span
        if given.get("span") == "1h":
            del given["span"]
        words = urlencode({name: value for name, value in given.items() if value not in {None, ""}})
        return f"{self.request.scope.get('root_path', '')}{path}{('&' if '?' in path else '?') if words else ''}{words}"

    def back(self, page: str) -> str:
        """The page to show after a command: the one that its form names, else `page`."""
        return _own_page(self.field("back")) or page

    @property
    def came_from(self) -> str:
        """The page of this desk that contained the form; the first page if the browser does not say."""
        if named := _own_page(self.field("came_from")):
            return named
        root = self.request.scope.get("root_path", "")
        referer = urlsplit(self.request.headers.get("referer", ""))
        is_ours = referer.netloc == self.request.headers.get("host") and referer.path.startswith(f"{root}/")
        path = f"{referer.path}?{referer.query}" if referer.query else referer.path
        return (_own_page(path) if is_ours else None) or f"{root}/"

    async def shared(self, key: Hashable, ask: Callable[[], Awaitable[T]], fresh_for: float | None = None) -> T:
        """A cached result that open pages share, for `fresh_for` seconds; it must not depend on the caller."""
        return await self.frame.answers.get(key, ask, fresh_for)

    async def now(self) -> datetime:
        """The database's time."""
        return await self.shared("now", self.desk.now)

    async def page(self, template: str, *, title: str, status: int = 200, **values: Any) -> Response:
        """Render a page, or only its content for an open page."""
        return await self.frame.render(self, template, title=title, status=status, values=values)

    def done(self, sentence: str, back: str) -> Response:
        """The response to a command: a redirect to a page, which shows this sentence."""
        self.frame.answers.forget()
        response = RedirectResponse(self.url(back), 303)
        prefix = self.request.scope.get("root_path", "") or "/"
        said = urlencode({"": sentence[:_SENTENCE_LIMIT_CHARACTERS]})[1:]
        response.set_cookie(SAID, said, max_age=_SENTENCE_KEPT_SECONDS, path=prefix, httponly=True, samesite="strict")
        return response


def _own_page(path: str) -> str | None:
    """The path, if it cannot lead to another host."""
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) else None
