"""What browsers do to a desk: ask for pages, and keep tabs open that refresh themselves."""

from __future__ import annotations

import gzip
import http.client
import re
import threading
import time
from typing import Final, Self
from urllib.parse import urlsplit

from msgspec import Struct

TABS: Final = ("/", "/jobs", "/dead")
OK: Final = 200
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

    def get_well(self, path: str, expected: int = OK, *, is_part: bool = False) -> Answer:
        """The same; an answer with another status than the expected one, or without content, is an error."""
        answer = self.get(path, **({"Perdure-Part": "page"} if is_part else {}))
        if answer.status != expected or not answer.body:
            said = answer.body[-500:].decode()
            raise RuntimeError(f"{path} was answered with {answer.status}, expected {expected}: {said}")
        return answer

    def first_paint(self, path: str) -> int:
        """Bytes of a page and of the files that it names, with headers."""
        page = self.get_well(path)
        files = {found.decode() for found in _FILE.findall(page.body)}
        return page.size + sum(self.get_well(name).size for name in sorted(files))


class Tab:
    """A page in a browser: a stream that tells of changes, and the page, asked for again after each."""

    def __init__(self, address: str, path: str) -> None:
        self._address = address
        self._path = path
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._stay_open, daemon=True)
        self._problem: str | None = None
        self.refreshed = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._thread.join(_TIMEOUT)
        if self._problem is not None:
            raise RuntimeError(f"the tab of {self._path} was not open: {self._problem}")

    def _stay_open(self) -> None:
        parts = urlsplit(self._address)
        stream = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_TIMEOUT)
        try:
            self._follow(stream, Browser(self._address))
        except (OSError, http.client.HTTPException, RuntimeError) as error:
            self._problem = repr(error)
        finally:
            stream.close()

    def _follow(self, stream: http.client.HTTPConnection, browser: Browser) -> None:
        browser.get_well(self._path)
        stream.request("GET", "/live", headers={"Accept": "text/event-stream"})
        lines = stream.getresponse()
        if lines.status != OK:
            raise RuntimeError(f"/live was answered with {lines.status}")
        while not self._closing.is_set():
            if not (line := lines.readline()):
                raise RuntimeError("the stream ended")
            if line.startswith(b"event: tick"):
                page = browser.get_well(self._path, is_part=True)
                self.refreshed += 1
                took = float(found[1]) if (found := _TOOK.search(page.body)) else 0.0
                self._closing.wait(min(max(REFRESHED_EVERY, TIMES_WHAT_IT_TOOK * took), SELDOMEST))
