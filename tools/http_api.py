"""Write docs/reference/openapi.json and docs/reference/http-api.md from the table of routes, so that they cannot lie.

Run it after a change to `perdure.surfaces.api`; a test fails while the files are out of date. What stands around the
table of the page is left as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from perdure.surfaces.api.openapi import openapi
from perdure.surfaces.api.route import Route
from perdure.surfaces.api.routes import ROUTES

REFERENCE: Final = Path(__file__).parent.parent / "docs" / "reference"
PAGE: Final = REFERENCE / "http-api.md"
DOCUMENT: Final = REFERENCE / "openapi.json"

_BEGIN: Final = "<!-- routes: written by tools/http_api.py -->"
_END: Final = "<!-- end of routes -->"


def document() -> str:
    """The OpenAPI document as a file."""
    return json.dumps(openapi(ROUTES), indent=1, ensure_ascii=False) + "\n"


def render(page: str) -> str:
    """The page with its tables as they should be."""
    pattern = re.compile(f"{re.escape(_BEGIN)}.*?{re.escape(_END)}", re.DOTALL)
    if len(pattern.findall(page)) != 1:
        raise SystemExit(f"{PAGE.name} needs one part between {_BEGIN} and {_END}")
    return pattern.sub(lambda _: "\n".join([_BEGIN, *_tables(), _END]), page)


def _tables() -> Iterator[str]:
    for tag in dict.fromkeys(route.tag for route in ROUTES):
        yield from ("", f"### {tag.capitalize()}", "", "| request | scope | takes | does |", "|---|---|---|---|")
        yield from (_row(route) for route in ROUTES if route.tag == tag)
    yield ""


def _row(route: Route) -> str:
    marks = f"{' ⚑' if route.guarded else ''}"
    return f"| `{route.method} {route.path}`{marks} | {route.scope} | {_takes(route)} | {route.summary} |"


def _takes(route: Route) -> str:
    query = [] if route.query is None else [f"`?{field.encode_name}`" for field in msgspec.structs.fields(route.query)]
    body = [] if route.request is None else [_field(field) for field in msgspec.structs.fields(route.request)]
    return ", ".join([*query, *body])


def _field(field: msgspec.structs.FieldInfo) -> str:
    return f"**`{field.encode_name}`**" if field.required else f"`{field.encode_name}`"


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    DOCUMENT.write_text(document(), encoding="utf-8")
