"""A stop flag calls whoever waits for it, as soon as it is raised and no longer than they wait."""

from __future__ import annotations

from perdure.worker.attempt.context.stop_flag import StopFlag


def test_a_waiter_is_called_when_it_is_raised_and_not_after() -> None:
    flag, calls = StopFlag(), list[str]()
    with flag.calling(lambda: calls.append("stop")):
        assert (flag.is_raised, calls) == (False, [])
        flag.stop("cancelled")
        assert (flag.is_raised, flag.reason, calls) == (True, "cancelled", ["stop"])
        flag.close()
    flag.close()
    assert calls == ["stop"] * 2


def test_a_late_waiter_is_called_at_once() -> None:
    calls = list[str]()
    with StopFlag(closing=True).calling(lambda: calls.append("closing")):
        assert calls == ["closing"]
