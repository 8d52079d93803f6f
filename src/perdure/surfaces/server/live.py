"""Changes, sent to open pages and API clients as server-sent events.

One hub serves a process. A stream subscribes to topics. Once a second at most, and only while streams are open, the
hub asks the database once for each topic, however many streams want it, and sends what has changed. A slow reader
costs no memory: of each topic only the newest message waits for it.

While the database is away, streams get one `away` event; when it is back, a `back` event and every topic anew.

A stop never waits for a reader: `close` ends every stream. Streams also end when uvicorn, also one of the app's own,
has been told to stop, because uvicorn waits for open responses before it tells applications about it; and after ten
minutes, when browsers open them again.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

import msgspec
from msgspec import Struct
from starlette.responses import StreamingResponse

from perdure.clock import Clock, SystemClock
from perdure.errors import PerdureError, StoreError
from perdure.events import Emitter
from perdure.lifecycle.loops.loop import Loop
from perdure.operate.desk import Desk
from perdure.policy.retries.jitter import Jitter

INTERVAL: Final = timedelta(seconds=1)
MOST_STREAMS: Final = 100
MOST_TOPICS: Final = 10  # of one stream
HEARTBEAT: Final = 15.0
LONGEST_STREAM_SECONDS: Final = 600.0
RECONNECT: Final = 2_000  # milliseconds that a browser waits before it opens a stream again
AWAY: Final = "away"
BACK: Final = "back"
EVENT_STREAM: Final = "text/event-stream"

Ask = Callable[[Desk], Awaitable[Any]]


class TooManyStreams(PerdureError):  # noqa: N818 - reads as what is the matter
    """This process serves as many streams as it may."""


class Topic(Struct, frozen=True):
    """Something to follow: `ask` is put once for all streams that follow the same `key`.

    An answer that is text is sent as it is (a piece of a page), any other as JSON. `event` is the name under which
    readers hear of it.
    """

    event: str
    key: str
    ask: Ask


class Stream:
    """One open stream: the newest message of each topic that its reader has not had yet."""

    def __init__(self, topics: tuple[Topic, ...]) -> None:
        self.topics = topics
        self._waiting: dict[str, bytes] = {}
        self._stir = asyncio.Event()
        self.is_closed = False

    def put(self, key: str, message: bytes) -> None:
        """Let this message wait for the reader, in place of an older one of the same key."""
        self._waiting.pop(key, None)
        self._waiting[key] = message
        self._stir.set()

    def close(self) -> None:
        """End the stream; what waits is not sent any more."""
        self.is_closed = True
        self._stir.set()

    async def next(self, limit: float) -> bytes:
        """What waits, as soon as something does; a heartbeat if nothing comes within the limit."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit):
                await self._stir.wait()
        self._stir.clear()
        waiting, self._waiting = self._waiting, {}
        return b"".join(waiting.values()) or b": heartbeat\n\n"


class LiveHub(Loop[int]):
    """Asks for the topics of open streams and sends what has changed. `tick` returns how many messages it sent."""

    name = "live hub"
    interval = INTERVAL
    limit = timedelta(seconds=10)
    jitter = Jitter.none()

    def __init__(
        self,
        emitter: Emitter,
        desk: Callable[[], Awaitable[Desk]],
        encode: Callable[[Any], bytes] = msgspec.json.encode,
        *,
        most_streams: int = MOST_STREAMS,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(emitter)
        self._desk = desk
        self._encode = encode
        self._most_streams = most_streams
        self._clock = clock or SystemClock()
        self._streams: set[Stream] = set()
        self._last: dict[str, bytes] = {}
        self._is_away = False
        self._is_closed = False

    @property
    def streams(self) -> int:
        """How many streams are open."""
        return len(self._streams)

    def open(self, topics: Iterable[Topic]) -> Stream:
        """Open a stream; raises TooManyStreams. It begins with the last messages of its topics."""
        if self._is_closed or len(self._streams) >= self._most_streams:
            raise TooManyStreams(f"{len(self._streams)} streams are open, {self._most_streams} are allowed: close some")
        stream = Stream(tuple(topics)[:MOST_TOPICS])
        for topic in stream.topics:
            if (message := self._last.get(topic.key)) is not None:
                stream.put(topic.key, message)
        self._streams.add(stream)
        return stream

    async def read(self, stream: Stream) -> AsyncIterator[bytes]:
        """The stream as it goes over the wire, until it is closed or has lasted long enough."""
        ends_at = self._clock.monotonic() + LONGEST_STREAM_SECONDS
        try:
            yield f"retry: {RECONNECT}\n\n".encode()
            while not stream.is_closed and self._clock.monotonic() < ends_at:
                chunk = await stream.next(HEARTBEAT)
                if not stream.is_closed:
                    yield chunk
        finally:
            self.leave(stream)

    def leave(self, stream: Stream) -> None:
        """Remove this stream from the count."""
        self._streams.discard(stream)

    def close(self) -> None:
        """End every stream, and open no new one."""
        self._is_closed = True
        for stream in self._streams:
            stream.close()
        self.stop()

    def is_wanted(self) -> bool:
        """Ask only while there are readers."""
        if _is_server_stopping():
            for stream in self._streams:
                stream.close()
        if not self._streams:
            self._last.clear()
        return bool(self._streams)

    async def tick(self) -> int:
        """Ask for each topic once, and send what has changed."""
        topics = {topic.key: topic for stream in tuple(self._streams) for topic in stream.topics}
        for gone in self._last.keys() - topics.keys():
            del self._last[gone]
        try:
            desk = await self._desk()
            if self._is_away:
                self._last.clear()  # so that every topic is sent anew
            sent = [await self._refresh(topic, desk) for topic in topics.values()]
        except StoreError as error:
            self._tell_away(str(error))
            return 0
        if self._is_away:
            self._is_away = False
            self._tell_all(BACK, {})
        return sum(sent)

    async def _refresh(self, topic: Topic, desk: Desk) -> int:
        try:
            answer = await topic.ask(desk)
        except StoreError:
            raise
        except PerdureError as error:  # such as a job that was deleted
            answer = {"error": str(error)}
        message = sse(topic.event, answer.encode() if isinstance(answer, str) else self._encode(answer))
        if self._last.get(topic.key) == message:
            return 0
        self._last[topic.key] = message
        readers = [stream for stream in self._streams if any(one.key == topic.key for one in stream.topics)]
        for stream in readers:
            stream.put(topic.key, message)
        return len(readers)

    def _tell_away(self, problem: str) -> None:
        if not self._is_away:
            self._is_away = True
            self._tell_all(AWAY, {"error": problem, "since": self._clock.now()})

    def _tell_all(self, event: str, about: dict[str, Any]) -> None:
        for stream in self._streams:
            stream.put(f" {AWAY}", sse(event, msgspec.json.encode(about)))


def stream(hub: LiveHub, topics: Iterable[Topic]) -> StreamingResponse:
    """A response that lasts as long as its reader and the server; raises TooManyStreams."""
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(hub.read(hub.open(topics)), media_type=EVENT_STREAM, headers=headers)


def sse(event: str, data: bytes) -> bytes:
    """One server-sent event; data of several lines is still one event."""
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    return b"event: " + event.encode() + b"\n" + b"".join(b"data: " + line + b"\n" for line in lines) + b"\n"


def _is_server_stopping() -> bool:
    """Whether a uvicorn that handles this process's signals was told to stop."""
    server = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    return bool(getattr(server, "should_exit", False))
