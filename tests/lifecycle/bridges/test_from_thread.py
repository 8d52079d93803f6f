"""A thread that waits for an event loop."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from perdure.lifecycle.bridges import from_thread
from perdure.lifecycle.bridges.from_thread import result_of


def test_a_result_or_an_error_arrives() -> None:
    done, failed = Future[int](), Future[int]()
    done.set_result(42)
    failed.set_exception(KeyError("gone"))
    assert result_of(done) == 42
    with pytest.raises(KeyError, match="gone"):
        result_of(failed)


@pytest.mark.parametrize("to_the_end", [False, True])
def test_an_interrupted_caller_cancels_or_first_waits_for_the_end(
    monkeypatch: pytest.MonkeyPatch, to_the_end: bool
) -> None:
    future = Future[int]()
    waits: list[float | None] = []

    def interrupted(_: object, timeout: float | None = None) -> None:
        waits.append(timeout)
        if timeout is not None:
            raise KeyboardInterrupt

    monkeypatch.setattr(from_thread, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        result_of(future, to_the_end=to_the_end)
    assert future.cancelled() is not to_the_end
    assert (None in waits) is to_the_end
