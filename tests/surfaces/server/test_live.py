"""The live hub: one question a second for all streams, and a stop that waits for no reader."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from perdure.errors import NotFoundError, StoreUnavailable
from perdure.events import Emitter
from perdure.operate.desk import Desk
from perdure.storage.port import Store
from perdure.surfaces.server.live import LiveHub, Stream, TooManyStreams, Topic, sse
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


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
async def hub(store: Store) -> LiveHub:
    async def desk() -> Desk:
        return Desk(store, "test")

    return LiveHub(Emitter(), desk, most_streams=3)


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
    assert [await read(stream) for stream in streams] == [b": heartbeat\n\n"] * 2
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
    readers = [hub.read(hub.open([topic])) for _ in range(3)]
    with pytest.raises(TooManyStreams, match="3 are allowed"):
        hub.open([topic])
    for reader in readers:
        assert await anext(reader) == b"retry: 2000\n\n"
    waiting = [asyncio.create_task(anext(reader, None)) for reader in readers]
    await asyncio.sleep(0)
    hub.close()
    assert await asyncio.wait_for(asyncio.gather(*waiting), 5) == [None] * 3
    assert hub.streams == 0
    with pytest.raises(TooManyStreams):
        hub.open([topic])


async def test_a_reader_that_leaves_makes_room(hub: LiveHub, source: Source) -> None:
    reader = hub.read(hub.open([Topic("numbers", "numbers", source.ask)]))
    await anext(reader)
    await reader.aclose()  # type: ignore[attr-defined]
    assert (hub.streams, hub.is_wanted()) == (0, False)


async def test_an_outage_is_told_once_and_everything_anew_after_it(hub: LiveHub, source: Source) -> None:
    stream = hub.open([Topic("numbers", "numbers", source.ask)])
    await hub.tick()
    await read(stream)
    source.value = StoreUnavailable("gone fishing")
    await hub.tick()
    assert b"event: away" in (told := await read(stream))
    assert b"gone fishing" in told
    await hub.tick()
    assert await read(stream) == b": heartbeat\n\n"
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
