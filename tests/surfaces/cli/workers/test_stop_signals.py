"""What signals to stop mean to a worker: one wish may arrive twice, a second wish is another matter."""

from __future__ import annotations

from datetime import timedelta

from perdure.clock import ManualClock
from perdure.surfaces.cli.workers.running import StopSignals


def test_c1_a_signal_repeated_within_a_second_is_the_same_wish(clock: ManualClock) -> None:
    """A service manager sends SIGTERM to each process of a service, and the supervisor passes its own on."""
    done: list[str] = []
    signals = StopSignals(lambda: done.append("stop"), lambda: done.append("hurry"), clock)
    signals.arrived()
    signals.arrived()
    clock.move(timedelta(milliseconds=999))
    signals.arrived()
    assert done == ["stop"]
    clock.move(timedelta(milliseconds=1))
    signals.arrived()
    assert done == ["stop", "hurry"]
