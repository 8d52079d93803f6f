"""A heartbeat goes on after errors and silence, and its worker is told when it has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

import pytest
from tests.support.waiting import until

from perdure.clock import SystemClock
from perdure.domain.jobs.ids import WorkerId
from perdure.events import Emitter, Event, StoreTrouble
from perdure.storage.port import Store
from perdure.worker.presence import heartbeat as heartbeat_module
from perdure.worker.presence.heartbeat import BeatTimes, Heartbeat


class Pulse:
    """A store that can only beat; each answer may be an error, a silence, or a word."""

    def __init__(self, *answers: BaseException | bool | None) -> None:
        self._answers = list(answers)
        self.beats = 0

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def fail(self) -> None:
        raise OSError("no file to spare")

    async def beat(self, _: WorkerId) -> bool:
        self.beats += 1
        answer = self._answers.pop(0) if self._answers else True
        if answer is None:
            await asyncio.Event().wait()
        if isinstance(answer, BaseException):
            raise answer
        return bool(answer)


def beating(pulse: Pulse, lost: Callable[[], None], events: list[Event] | None = None) -> Heartbeat:
    emitter = Emitter()
    emitter.subscribe((events if events is not None else []).append)
    times = BeatTimes(interval_seconds=0.01, limit_seconds=0.05, registered_at=0.0)
    heartbeat = Heartbeat(cast("Store", pulse), WorkerId(1), times, emitter=emitter, clock=SystemClock(), on_lost=lost)
    heartbeat.start()
    return heartbeat


@pytest.mark.parametrize("trouble", [RuntimeError("odd"), OSError("no file to spare"), None], ids=str)
async def test_a_beat_that_fails_or_gets_no_answer_is_tried_again(trouble: Exception | None) -> None:
    lost: list[bool] = []
    events: list[Event] = []
    pulse = Pulse(True, trouble, True)
    heartbeat = beating(pulse, lambda: lost.append(True), events)
    await until(lambda: pulse.beats > 3)
    await heartbeat.stop()
    assert lost == []
    assert [type(event) for event in events] == [StoreTrouble]


@pytest.mark.parametrize("end", ["declared dead", "thread ended"])
async def test_a_worker_without_a_beat_is_reported(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if end == "thread ended":
        monkeypatch.setattr(heartbeat_module, "_RETRY_SECONDS", 0.01)
        monkeypatch.setattr(Heartbeat, "_beat_until_stopped", Pulse.fail)
    lost = asyncio.Event()
    heartbeat = beating(Pulse(True, False), lost.set)
    await asyncio.wait_for(lost.wait(), 10)
    await heartbeat.stop()
