"""The page that is shown while the database cannot be opened: it loads no other file, and reloads itself."""

from __future__ import annotations

from html import escape
from typing import Final

from starlette.responses import Response

_RETRY_AFTER_SECONDS: Final = 3
_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="{again}">
<meta name="viewport" content="width=device-width"><title>No answer from the database · perdure</title></head>
<body><h1>No answer from the database</h1><p>{problem}</p>
<p>This page tries again every {again} seconds.</p></body></html>
"""


def outage_page(problem: str) -> Response:
    """The page, with status 503 and Retry-After for programs."""
    headers = {"retry-after": str(_RETRY_AFTER_SECONDS), "cache-control": "no-store", "perdure-away": "database"}
    return Response(
        _PAGE.format(again=_RETRY_AFTER_SECONDS, problem=escape(problem)), 503, headers, "text/html; charset=utf-8"
    )
