"""Streams of the event log that are at the same place ask the database once."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import cast

from perdure.clock import ManualClock
from perdure.operate.commands.feed import EventPage
from perdure.operate.desk import Desk
from perdure.surfaces.server.event_stream import LOOK_INTERVAL_SECONDS, EventReads


class CountingFeed:
    def __init__(self) -> None:
        self.asked: list[str] = []

    @property
    def feed(self) -> CountingFeed:
        return self

    async def events(self, after: str, *, limit: int) -> EventPage:
        self.asked.append(after)
        return EventPage(events=(), next=after, more=limit == 0)


async def test_one_question_serves_all_streams_at_a_cursor_for_a_moment() -> None:
    counting, clock = CountingFeed(), ManualClock()

    async def desk() -> Desk:
        return cast("Desk", counting)

    reads = EventReads(desk, clock)
    await asyncio.gather(*(reads.behind("1-1") for _ in range(50)), reads.behind("1-2"))
    assert sorted(counting.asked) == ["1-1", "1-2"]
    clock.move(timedelta(seconds=LOOK_INTERVAL_SECONDS))
    await reads.behind("1-1")
    assert counting.asked.count("1-1") == 2


async def test_a_stream_that_leaves_takes_no_answer_from_the_others() -> None:
    counting = CountingFeed()

    async def desk() -> Desk:
        await asyncio.sleep(0.01)
        return cast("Desk", counting)

    reads = EventReads(desk, ManualClock())
    leaving, staying = (asyncio.create_task(reads.behind("1-1")) for _ in range(2))
    await asyncio.sleep(0)
    leaving.cancel()
    assert (await staying).next == "1-1"
    assert counting.asked == ["1-1"]
