"""Changes, sent to open pages and API clients as server-sent events.

One hub serves a process. A stream subscribes to topics. While streams are open, the hub queries each topic at most once
a second, for all its streams together, and sends what has changed. A slow reader needs no memory: only the newest
message of each topic waits for it.

When the database becomes unavailable, streams get one `away` event; when it answers again, a `back` event and then
every topic. The access of readers is checked again every few seconds: a revoked token ends its streams.

A shutdown never waits for a reader: `close` ends every stream. Streams also end when uvicorn stops, the app's own too,
because uvicorn waits for open responses before it notifies applications. They also end after ten minutes (browsers
reconnect), and when a reader has read nothing for a minute.
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
from starlette.types import Message, Receive, Scope, Send

from perdure.clock import Clock, SystemClock
from perdure.errors import PerdureError, StoreError
from perdure.events import Emitter
from perdure.lifecycle.loops.loop import Loop
from perdure.operate.desk import Desk
from perdure.policy.retries.jitter import Jitter

INTERVAL: Final = timedelta(seconds=1)
STREAMS_LIMIT: Final = 100
TOPICS_PER_STREAM: Final = 10  # of one stream
HEARTBEAT_SECONDS: Final = 15.0
CHECK_INTERVAL_SECONDS: Final = 2.0  # between two checks of a reader's access
LONGEST_STREAM_SECONDS: Final = 600.0
STALLED_SECONDS: Final = 60.0
RECONNECT_MS: Final = 2_000  # milliseconds that a browser waits before it reconnects
AWAY: Final = "away"
BACK: Final = "back"
EVENT_STREAM: Final = "text/event-stream"
_OUTAGE: Final = " away"  # the key of messages about the database; no topic has it

END: Final = b'event: end\ndata: {"why":"the token was revoked or has expired"}\n\n'

Ask = Callable[[Desk], Awaitable[Any]]

Check = Callable[[], Awaitable[bool]]
"""Whether the reader's access is still valid."""


class TooManyStreams(PerdureError):  # noqa: N818 - reads as what is the matter
    """This process already serves as many streams as it may."""


class Topic(Struct, frozen=True):
    """Something to follow: `ask` runs once for all streams that follow the same `key`.

    A text answer is sent unchanged (a part of a page), any other as JSON. `event` is the type of the server-sent event.
    """

    event: str
    key: str
    ask: Ask


class Stream:
    """One open stream: the newest unsent message of each of its topics."""

    def __init__(self, topics: tuple[Topic, ...]) -> None:
        self.topics = topics
        self._waiting: dict[str, bytes] = {}
        self._stir = asyncio.Event()
        self.is_closed = False

    def put(self, key: str, message: bytes) -> None:
        """Queue this message for the reader; it replaces an older one of the same key."""
        self._waiting.pop(key, None)
        self._waiting[key] = message
        self._stir.set()

    def close(self) -> None:
        """End the stream; queued messages are not sent."""
        self.is_closed = True
        self._stir.set()

    async def next(self, limit: float) -> bytes:
        """The queued messages, as soon as there are any; none if none comes within the limit."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit):
                await self._stir.wait()
        self._stir.clear()
        waiting, self._waiting = self._waiting, {}
        return b"".join(waiting.values())


class LiveHub(Loop[int]):
    """Queries the topics of open streams and sends what has changed. `tick` returns how many messages it sent."""

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
        most_streams: int = STREAMS_LIMIT,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(emitter)
        self._desk = desk
        self._encode = encode
        self._most_streams = most_streams
        self._clock = clock or SystemClock()
        self._streams: set[Stream] = set()
        self._last: dict[str, bytes] = {}
        self._away: bytes | None = None  # the message of the outage, while the database is unavailable
        self._is_closed = False

    @property
    def streams(self) -> int:
        """How many streams are open."""
        return len(self._streams)

    def open(self, topics: Iterable[Topic]) -> Stream:
        """Open a stream; raises TooManyStreams.

        It begins with the last messages of its topics and, if the database is unavailable, with an `away` event.
        """
        if self._is_closed or len(self._streams) >= self._most_streams:
            raise TooManyStreams(f"{len(self._streams)} streams are open, {self._most_streams} are allowed: close some")
        stream = Stream(tuple(topics)[:TOPICS_PER_STREAM])
        for topic in stream.topics:
            if (message := self._last.get(topic.key)) is not None:
                stream.put(topic.key, message)
        if self._away is not None:
            stream.put(_OUTAGE, self._away)
        self._streams.add(stream)
        return stream

    async def read(self, stream: Stream, may_read: Check) -> AsyncIterator[bytes]:
        """The stream as bytes, until it is closed, reaches its maximum age, or the reader loses access."""
        begun = checked = spoken = self._clock.monotonic()
        yield f"retry: {RECONNECT_MS}\n\n".encode()
        while self._clock.monotonic() - begun < LONGEST_STREAM_SECONDS:
            waiting = await stream.next(CHECK_INTERVAL_SECONDS)
            now = self._clock.monotonic()
            if stream.is_closed:
                return
            if now - checked >= CHECK_INTERVAL_SECONDS:
                checked = now
                if not await may_read():
                    yield END
                    return
            if waiting or now - spoken >= HEARTBEAT_SECONDS:
                spoken = now
                yield waiting or b": heartbeat\n\n"

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
        """Query each topic once, and send what has changed."""
        topics = {topic.key: topic for stream in tuple(self._streams) for topic in stream.topics}
        for gone in self._last.keys() - topics.keys():
            del self._last[gone]
        try:
            desk = await self._desk()
            if self._away is not None:
                self._last.clear()  # so that every topic is sent again
            sent = [await self._refresh(topic, desk) for topic in topics.values()]
        except StoreError as error:
            self._report_outage(str(error))
            return 0
        if self._away is not None:
            self._away = None
            self._send_to_all(sse(BACK, b"{}"))
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

    def _report_outage(self, problem: str) -> None:
        if self._away is None:
            self._away = sse(AWAY, msgspec.json.encode({"error": problem, "since": self._clock.now()}))
            self._send_to_all(self._away)

    def _send_to_all(self, message: bytes) -> None:
        for stream in self._streams:
            stream.put(_OUTAGE, message)


class StreamResponse(StreamingResponse):
    """A stream as a response. However it ends, its slot is freed, even if the reader disconnects before it begins.

    A HEAD request gets the headers only: its stream would have no reader. A reader that reads nothing for a while is
    disconnected, because a stream notices only at a read that its time or its reader's access has ended.
    """

    def __init__(self, hub: LiveHub, stream: Stream, chunks: AsyncIterator[bytes]) -> None:
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        super().__init__(chunks, media_type=EVENT_STREAM, headers=headers)
        self._hub = hub
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream until it ends."""
        try:
            if scope["method"] == "HEAD":
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                await send({"type": "http.response.body", "body": b""})
            else:
                await super().__call__(scope, receive, send)
        finally:
            self._hub.leave(self._stream)

    async def stream_response(self, send: Send) -> None:
        """Send each piece of the stream, within the time limit."""

        async def send_in_time(message: Message) -> None:
            async with asyncio.timeout(STALLED_SECONDS):
                await send(message)

        with suppress(TimeoutError):
            await super().stream_response(send_in_time)


def stream(hub: LiveHub, topics: Iterable[Topic], may_read: Check) -> StreamResponse:
    """A response that ends with its reader, the reader's access or the server; raises TooManyStreams."""
    opened = hub.open(topics)
    return StreamResponse(hub, opened, hub.read(opened, may_read))


def sse(event: str, data: bytes) -> bytes:
    """One server-sent event; data of several lines is still one event."""
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    return b"event: " + event.encode() + b"\n" + b"".join(b"data: " + line + b"\n" for line in lines) + b"\n"


def _is_server_stopping() -> bool:
    """Whether a uvicorn that handles this process's signals was told to stop."""
    server = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    return bool(getattr(server, "should_exit", False))
