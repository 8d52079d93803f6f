"""The clock of tests."""

from __future__ import annotations

from datetime import timedelta

from perdure.clock import ManualClock, SystemClock


def test_a_manual_clock_moves_only_when_moved_and_its_monotonic_time_never_back() -> None:
    clock = ManualClock()
    start = clock.now()
    assert clock.move(timedelta(hours=1)) == clock.now() == start + timedelta(hours=1)
    assert clock.monotonic() == 3_600.0
    assert clock.move(-timedelta(hours=2)) == start - timedelta(hours=1)
    assert clock.monotonic() == 3_600.0


def test_both_readings_of_the_machines_clock_are_the_same_time() -> None:
    clock = SystemClock()
    before = clock.micros()
    now = clock.now().timestamp() * 1_000_000
    assert before - 1 <= now <= clock.micros() + 1
