"""What browsers do to a desk: ask for pages, and keep tabs open that refresh themselves."""

from __future__ import annotations

import gzip
import http.client
import re
import threading
import time
from contextlib import suppress
from typing import Final, Self
from urllib.parse import urlsplit

from msgspec import Struct

TABS: Final = ("/", "/jobs", "/dead")
REFRESHED_EVERY: Final = 2.0  # seconds, as the script of the desk does it
TIMES_WHAT_IT_TOOK: Final = 80  # likewise: an expensive page is refreshed more seldom
SELDOMEST: Final = 15.0  # seconds
_TOOK: Final = re.compile(rb'data-took="([0-9.]+)"')
_TIMEOUT: Final = 30.0
_FILE: Final = re.compile(rb'(?:href|src)="([^"]*/static/[^"]+)"')


class Answer(Struct, frozen=True):
    """One answer: how long it took, and how many bytes went over the wire."""

    status: int
    seconds: float
    size: int
    body: bytes


class Browser:
    """One connection that stays open."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_TIMEOUT)

    def get(self, path: str, **headers: str) -> Answer:
        """Ask for a path, and read all of the answer."""
        begun = time.perf_counter()
        self._connection.request("GET", path, headers={"Accept-Encoding": "gzip", **headers})
        response = self._connection.getresponse()
        body = response.read()
        seconds = time.perf_counter() - begun
        size = len(body) + sum(len(name) + len(value) + 4 for name, value in response.getheaders())
        packed = response.getheader("Content-Encoding") == "gzip"
        return Answer(response.status, seconds, size, gzip.decompress(body) if packed else body)

    def first_paint(self, path: str) -> int:
        """Bytes of a page and of the files that it names, with headers."""
        page = self.get(path)
        files = {found.decode() for found in _FILE.findall(page.body)}
        return page.size + sum(self.get(name).size for name in sorted(files))


class Tab:
    """A page in a browser: a stream that tells of changes, and the page, asked for again after each."""

    def __init__(self, address: str, path: str) -> None:
        self._address = address
        self._path = path
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._stay_open, daemon=True)
        self.refreshed = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._thread.join(_TIMEOUT)

    def _stay_open(self) -> None:
        parts = urlsplit(self._address)
        stream = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_TIMEOUT)
        browser = Browser(self._address)
        with suppress(OSError, http.client.HTTPException):
            browser.get(self._path)
            stream.request("GET", "/live", headers={"Accept": "text/event-stream"})
            lines = stream.getresponse()
            while not self._closing.is_set():
                if lines.readline().startswith(b"event: tick"):
                    page = browser.get(self._path, **{"Perdure-Part": "page"})
                    self.refreshed += 1
                    took = float(found[1]) if (found := _TOOK.search(page.body)) else 0.0
                    self._closing.wait(min(max(REFRESHED_EVERY, TIMES_WHAT_IT_TOOK * took), SELDOMEST))
        stream.close()
