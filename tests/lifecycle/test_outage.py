"""C4: one retry for every caller of the database: it waits, tells each error, and ends when it is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.support.timer import ManualTimer

from perdure.errors import StoreRefused, StoreUnavailable
from perdure.events import Emitter, Event, StoreRecovered, StoreTrouble
from perdure.lifecycle.outage import ANY_ERROR, Outage


@pytest.fixture
def timer(monkeypatch: pytest.MonkeyPatch) -> ManualTimer:
    timer = ManualTimer()
    monkeypatch.setattr(Outage, "timer", timer)
    return timer


@pytest.fixture
def told() -> list[Event]:
    return []


@pytest.fixture
def outage(told: list[Event]) -> Outage:
    emitter = Emitter()
    emitter.subscribe(told.append)
    return Outage("test", emitter)


def failing(*errors: Exception) -> Callable[[], Awaitable[str]]:
    left = list(errors)

    async def call() -> str:
        if left:
            raise left.pop(0)
        return "answer"

    return call


async def test_c4_calls_until_there_is_an_answer(outage: Outage, timer: ManualTimer, told: list[Event]) -> None:
    errors: list[tuple[Exception, float]] = []
    away, refused = StoreUnavailable("away"), StoreRefused("full")
    asked = asyncio.create_task(
        outage.outlast(failing(away, refused), on_error=lambda error, wait: errors.append((error, wait)))
    )
    await timer.move(0.25)
    assert not asked.done()
    await timer.move(0.25)
    assert await asked == "answer"
    assert errors == [(away, 0.2), (refused, 0.2)]
    assert [type(event) for event in told] == [StoreTrouble, StoreTrouble, StoreRecovered]
    assert outage.failures == 0


async def test_other_errors_are_raised_at_once(outage: Outage, told: list[Event]) -> None:
    with pytest.raises(ValueError, match="other"):
        await outage.outlast(failing(ValueError("other")))
    assert told == []


async def test_a_stop_before_the_wait_raises_the_error_without_waiting(outage: Outage, told: list[Event]) -> None:
    with pytest.raises(ValueError, match="other"):
        await outage.outlast(failing(ValueError("other")), ANY_ERROR, stop=lambda: True)
    assert len(told) == 1


async def test_a_stop_during_the_wait_raises_the_error_after_it(outage: Outage, timer: ManualTimer) -> None:
    stopped = asyncio.Event()
    asked = asyncio.create_task(outage.outlast(failing(StoreUnavailable("away")), stop=stopped.is_set))
    await timer.move(0.1)
    stopped.set()
    await timer.move(0.1)
    with pytest.raises(StoreUnavailable):
        await asked


async def test_the_hook_may_end_it(outage: Outage) -> None:
    def enough(error: Exception, _wait: float) -> None:
        raise error

    with pytest.raises(StoreUnavailable):
        await outage.outlast(failing(StoreUnavailable("away")), on_error=enough)
