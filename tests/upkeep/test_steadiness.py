"""A clock has jumped when it disagrees with the monotonic one, and not when time passes."""

from __future__ import annotations

from datetime import datetime, timedelta

from perdure.upkeep.steadiness import Steadiness


def test_time_that_simply_passes_is_no_jump() -> None:
    steadiness = Steadiness(timedelta(seconds=15))
    start = datetime.fromisoformat("2026-03-29T00:00:00+00:00")
    assert [steadiness.jump(start + timedelta(seconds=s), float(s)) for s in (0, 1, 100, 100_000)] == [None] * 4
    assert steadiness.jump(start, 100_001.0) == timedelta(seconds=-100_001)
