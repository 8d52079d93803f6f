"""The desk's own files: style sheet, scripts, picture. Their URLs carry a hash, so browsers keep them."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterable
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_FOREVER: Final = "public, max-age=31536000, immutable"
_HASH_CHARACTERS: Final = 12


class StaticFile(Struct, frozen=True):
    """A static file. `url_name` is its path with the hash: `desk.3f2a91b0c4de.css`."""

    url_name: str
    content_type: str
    body: bytes
    packed: bytes


class StaticFiles:
    """All files of the `static` folder, in memory: they are few and small."""

    def __init__(self) -> None:
        found = list(_walk(files("perdure.surfaces.desk") / "static", ""))
        self._names = {name: file.url_name for name, file in found}
        self._files = {file.url_name: file for _, file in found}

    def url_name(self, name: str) -> str:
        """The current path of a file under `/static/`."""
        return self._names[name]

    async def serve(self, request: Request) -> Response:
        """Send a file; with gzip if the browser accepts it."""
        file = self._files.get(request.path_params["path"])
        if file is None:
            return PlainTextResponse("There is no such file.", 404)
        headers = {"Cache-Control": _FOREVER, "Vary": "Accept-Encoding"}
        if reads_gzip(request):
            return Response(file.packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=file.content_type)
        return Response(file.body, headers=headers, media_type=file.content_type)


def reads_gzip(request: Request) -> bool:
    """Whether the browser accepts gzip."""
    return "gzip" in request.headers.get("accept-encoding", "")


def _walk(folder: Traversable, path: str) -> Iterable[tuple[str, StaticFile]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _walk(entry, f"{path}{entry.name}/")
            continue
        stem, _, ending = entry.name.rpartition(".")
        if ending in _TYPES:
            body = entry.read_bytes()
            mark = hashlib.sha256(body).hexdigest()[:_HASH_CHARACTERS]
            packed = gzip.compress(body, 9, mtime=0)
            yield f"{path}{entry.name}", StaticFile(f"{path}{stem}.{mark}.{ending}", _TYPES[ending], body, packed)
