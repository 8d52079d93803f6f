"""The live hub: one question a second for all streams, and a stop that waits for no reader."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message

from perdure.clock import ManualClock
from perdure.errors import NotFoundError, StoreUnavailable
from perdure.events import Emitter
from perdure.operate.desk import Desk
from perdure.storage.port import Store
from perdure.surfaces.server.live import (
    CHECK_INTERVAL_SECONDS,
    END,
    LiveHub,
    Stream,
    StreamResponse,
    TooManyStreams,
    Topic,
    sse,
    stream,
)
from perdure.surfaces.server.topics import TICK, topic_of_job


class Source:
    """Something to follow that counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.value: Any = {"n": 1}

    async def ask(self, _: Desk) -> Any:
        self.asked += 1
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


class Reader:
    """A client that takes so many messages and is gone then."""

    def __init__(self, response: StreamResponse, messages: int = 1_000, method: str = "GET") -> None:
        self._heard = asyncio.Queue[bytes]()
        self._left = messages
        scope = {"type": "http", "method": method, "asgi": {"spec_version": "2.4"}}
        self.task = asyncio.create_task(response(scope, self._receive, self._send))

    async def hears(self) -> bytes:
        return await asyncio.wait_for(self._heard.get(), 5)

    async def _receive(self) -> Message:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    async def _send(self, message: Message) -> None:
        if not self._left:
            raise OSError("gone")
        self._left -= 1
        if message["type"] == "http.response.body":
            self._heard.put_nowait(message["body"])


async def allowed() -> bool:
    return True


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
async def hub(store: Store, clock: ManualClock) -> LiveHub:
    async def desk() -> Desk:
        return Desk(store, "test")

    return LiveHub(Emitter(), desk, most_streams=3, clock=clock)


async def read(stream: Stream) -> bytes:
    return await stream.next(0.01)


async def test_streams_of_a_topic_share_one_question(hub: LiveHub, source: Source) -> None:
    assert not hub.is_wanted()
    topic = Topic("numbers", "numbers", source.ask)
    streams = [hub.open([topic]), hub.open([topic])]
    assert hub.is_wanted()
    assert (await hub.tick(), source.asked) == (2, 1)
    assert [await read(stream) for stream in streams] == [b'event: numbers\ndata: {"n":1}\n\n'] * 2
    assert await hub.tick() == 0
    assert [await read(stream) for stream in streams] == [b""] * 2
    late = hub.open([topic])
    assert await read(late) == b'event: numbers\ndata: {"n":1}\n\n'
    assert source.asked == 2


async def test_a_slow_reader_gets_only_the_newest(hub: LiveHub, source: Source) -> None:
    stream = hub.open([Topic("numbers", "numbers", source.ask)])
    for n in range(5):
        source.value = {"n": n}
        await hub.tick()
    assert await read(stream) == b'event: numbers\ndata: {"n":4}\n\n'


async def test_streams_are_counted_and_end_with_the_hub(hub: LiveHub, source: Source) -> None:
    topic = Topic("numbers", "numbers", source.ask)
    readers = [Reader(stream(hub, [topic], allowed)) for _ in range(3)]
    with pytest.raises(TooManyStreams, match="3 are allowed"):
        hub.open([topic])
    for reader in readers:
        assert await reader.hears() == b"retry: 2000\n\n"
    hub.close()
    await asyncio.wait_for(asyncio.gather(*(reader.task for reader in readers)), 5)
    assert hub.streams == 0
    with pytest.raises(TooManyStreams):
        hub.open([topic])


@pytest.mark.parametrize("messages", [0, 1, 2])
async def test_a_reader_that_leaves_makes_room(hub: LiveHub, source: Source, messages: int) -> None:
    """Also one who is gone before the first word."""
    reader = Reader(stream(hub, [Topic("numbers", "numbers", source.ask)], allowed), messages)
    await hub.tick()
    with pytest.raises(ClientDisconnect):
        await asyncio.wait_for(reader.task, 5)
    assert (hub.streams, hub.is_wanted()) == (0, False)


async def test_a_reader_that_takes_nothing_is_left_and_its_place_is_free(
    hub: LiveHub, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perdure.surfaces.server.live.STALLED_SECONDS", 0.01)
    response = stream(hub, [Topic("numbers", "numbers", source.ask)], allowed)

    async def never() -> Message:
        return await asyncio.Future[Message]()

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body":  # its buffers are full
            await never()

    scope = {"type": "http", "method": "GET", "asgi": {"spec_version": "2.3"}}
    await asyncio.wait_for(response(scope, never, send), 5)
    assert hub.streams == 0


async def test_a_head_request_takes_no_place(hub: LiveHub, source: Source) -> None:
    reader = Reader(stream(hub, [Topic("numbers", "numbers", source.ask)], allowed), method="HEAD")
    await asyncio.wait_for(reader.task, 5)
    assert (await reader.hears(), hub.streams) == (b"", 0)


async def test_a_reader_whose_access_has_ended_hears_no_more(hub: LiveHub, source: Source, clock: ManualClock) -> None:
    revoked = False

    async def may_read() -> bool:
        return not revoked

    reader = hub.read(hub.open([Topic("numbers", "numbers", source.ask)]), may_read)
    await anext(reader)
    await hub.tick()
    clock.move(timedelta(seconds=CHECK_INTERVAL_SECONDS))
    assert await anext(reader) == b'event: numbers\ndata: {"n":1}\n\n'
    revoked, source.value = True, {"n": 2}
    await hub.tick()
    clock.move(timedelta(seconds=CHECK_INTERVAL_SECONDS))
    assert [chunk async for chunk in reader] == [END]


async def test_a_stream_that_opens_in_an_outage_is_reported_it(hub: LiveHub, source: Source) -> None:
    topic = Topic("numbers", "numbers", source.ask)
    hub.open([topic])
    source.value = StoreUnavailable("gone fishing")
    await hub.tick()
    late = hub.open([topic])
    assert b"gone fishing" in await read(late)
    source.value = {"n": 1}
    await hub.tick()
    assert b"event: back" in await read(late)
    assert b"fishing" not in await read(hub.open([topic]))


async def test_an_outage_is_reported_once_and_everything_again_after_it(hub: LiveHub, source: Source) -> None:
    stream = hub.open([Topic("numbers", "numbers", source.ask)])
    await hub.tick()
    await read(stream)
    source.value = StoreUnavailable("gone fishing")
    await hub.tick()
    assert b"event: away" in (told := await read(stream))
    assert b"gone fishing" in told
    await hub.tick()
    assert await read(stream) == b""
    source.value = {"n": 1}
    await hub.tick()
    assert await read(stream) == b'event: numbers\ndata: {"n":1}\n\nevent: back\ndata: {}\n\n'


async def test_a_topic_that_cannot_be_found_harms_no_other(hub: LiveHub, source: Source) -> None:
    source.value = NotFoundError("it was deleted")
    stream = hub.open([Topic("numbers", "numbers", source.ask), TICK, topic_of_job("none")])
    await hub.tick()
    told = await read(stream)
    assert b'{"error":"it was deleted"}' in told
    assert told.count(b"event: ") == 3


def test_text_of_several_lines_is_one_event() -> None:
    assert sse("x", b"a\r\nb\rc\nd") == b"event: x\ndata: a\ndata: b\ndata: c\ndata: d\n\n"
