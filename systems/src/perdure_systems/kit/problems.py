"""Errors as problem documents (RFC 9457), or as a page for a person who follows a link."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import msgspec
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from perdure_systems.kit.pages import Pages

_DETAIL_LIMIT_CHARACTERS: Final = 1_000
_PAGES: Final = Pages("perdure", Path(__file__).parent / "templates", ())


class Problem(Exception):  # noqa: N818 - the word of RFC 9457
    """An answer other than 2xx: `raise Problem(404, "there is no flag 'dark-mode'")`."""

    def __init__(self, status: int, detail: str, *, field: str | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.field = status, detail, field


def problem_response(scope: Scope, status: int, detail: str, *, field: str | None = None) -> Response:
    """A problem document; a browser that asks for a page gets a page that says the same."""
    title, text = HTTPStatus(status).phrase, detail[:_DETAIL_LIMIT_CHARACTERS]
    if "text/html" in Headers(scope=scope).get("accept", "") and not scope["path"].startswith("/api/"):
        page = _PAGES.render("error.html", here="", title=title, detail=text)
        page.status_code = status
        return page
    content: dict[str, Any] = {"title": title, "status": int(status), "detail": text}
    if field is not None:
        content["field"] = field
    headers = {"WWW-Authenticate": "Bearer"} if status == HTTPStatus.UNAUTHORIZED else None
    return Response(msgspec.json.encode(content), status, headers, media_type="application/problem+json")
