"""Items go out in batches without a timer: the first at once, the rest together."""

from __future__ import annotations

import asyncio

from perdure.worker.recording.collector import Collector


class Gate:
    """Takes batches, each only when let through."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.open = asyncio.Event()

    async def take(self, batch: list[int]) -> None:
        self.batches.append(batch)
        await self.open.wait()


async def _turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_the_first_goes_out_at_once_and_the_rest_together() -> None:
    gate = Gate()
    collector = Collector(gate.take, most=10)
    collector.add([1])
    await _turns()
    collector.add([2])
    collector.add([3, 4])
    await _turns()
    assert gate.batches == [[1]]
    gate.open.set()
    await collector.drain()
    assert gate.batches == [[1], [2, 3, 4]]


async def test_a_batch_is_never_larger_than_its_limit() -> None:
    gate = Gate()
    gate.open.set()
    collector = Collector(gate.take, most=2)
    collector.add(range(5))
    await collector.drain()
    assert gate.batches == [[0, 1], [2, 3], [4]]


async def test_lanes_limit_the_batches_under_way() -> None:
    gate = Gate()
    collector = Collector(gate.take, most=1, lanes=2)
    for number in range(4):
        collector.add([number])
    await _turns()
    assert gate.batches == [[0], [1]]
    gate.open.set()
    await collector.drain()
    assert sorted(gate.batches) == [[0], [1], [2], [3]]


async def test_items_that_have_not_gone_out_can_be_taken_back() -> None:
    gate = Gate()
    collector = Collector(gate.take, most=1)
    collector.add([1, 2, 3])
    await _turns()
    assert collector.take_back() == [2, 3]
    gate.open.set()
    await collector.drain()
    assert gate.batches == [[1]]


async def test_a_closed_collector_hands_nothing_on() -> None:
    gate = Gate()
    collector = Collector(gate.take, most=1)
    collector.add([1, 2])
    await _turns()
    await collector.close()
    assert (gate.batches, collector.take_back()) == ([[1]], [])


async def test_after_a_rest_a_new_item_goes_out_at_once() -> None:
    gate = Gate()
    gate.open.set()
    collector = Collector(gate.take, most=5)
    collector.add([1])
    await collector.drain()
    collector.add([2])
    await collector.drain()
    assert gate.batches == [[1], [2]]
