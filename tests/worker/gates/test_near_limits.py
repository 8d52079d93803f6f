"""A gate near its limit is reported at most once a minute for each window (E8)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from perdure.clock import ManualClock
from perdure.domain.gate import NearLimit
from perdure.events import Emitter, Event, GateNearlyFull
from perdure.worker.gates.near_limits import NearLimits

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def test_e8_each_window_of_a_gate_is_reported_once_a_minute() -> None:
    clock, emitter, events = ManualClock(datetime(2026, 1, 1, tzinfo=UTC)), Emitter(), list[Event]()
    emitter.subscribe(events.append)
    near = NearLimits(emitter, clock)
    near.warn([NearLimit("ai", 8, 10, HOUR), NearLimit("ai", 80, 100, DAY)])
    near.warn([NearLimit("ai", 9, 10, HOUR)])
    clock.move(timedelta(seconds=59))
    near.warn([NearLimit("ai", 9, 10, HOUR)])
    assert events == [GateNearlyFull("ai", 8, 10, "1h"), GateNearlyFull("ai", 80, 100, "1d")]
    clock.move(timedelta(seconds=1))
    near.warn([NearLimit("ai", 9.5, 10, HOUR)])
    assert events[2:] == [GateNearlyFull("ai", 9.5, 10, "1h")]


def test_sums_of_fractions_are_reported_as_people_write_them() -> None:
    emitter, events = Emitter(), list[Event]()
    emitter.subscribe(events.append)
    NearLimits(emitter, ManualClock(datetime(2026, 1, 1, tzinfo=UTC))).warn([NearLimit("ai", sum([0.1] * 8), 1, DAY)])
    assert events == [GateNearlyFull("ai", 0.8, 1, "1d")]
