"""Signals that ask a process where it is; tests/surfaces/cli/workers/test_signals.py tests what real workers answer."""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType

import pytest
from tests.support.waiting import until_sync

from perdure.lifecycle.process.stack_signals import StackSignals


def test_c13_the_report_is_printed_once_and_knows_the_interrupted_frame(capfd: pytest.CaptureFixture[str]) -> None:
    asked: list[FrameType | None] = []

    def report(frame: FrameType | None) -> str:
        asked.append(frame)
        return "all is well\n"

    with StackSignals(report):
        os.kill(os.getpid(), signal.SIGUSR1)
        until_sync(lambda: asked)
    assert capfd.readouterr().err == "all is well\n"
    assert [frame is not None for frame in asked] == [True]


def test_c13_a_signal_that_finds_no_stack_is_answered_and_one_that_the_other_thread_has_answered_is_not() -> None:
    """A thread that is just ending has none."""
    asked: list[FrameType | None] = []

    def report(frame: FrameType | None) -> str:
        asked.append(frame)
        return ""

    with StackSignals(report) as signals:
        here = sys._getframe()
        signals._interrupted(signal.SIGUSR1, here)
        assert asked == [here]
        os.write(signals._pipes[signal.SIGUSR1].writer, b"a stack")
        until_sync(lambda: len(asked) == 2)
        with signals._busy:  # it has come to its end
            assert asked == [here, None]
        signals._interrupted(signal.SIGUSR1, here)
        assert asked == [here, None]
        signals._interrupted(signal.SIGUSR1, here)
        assert asked == [here, None, here]


def test_c13_a_report_that_fails_is_an_answer_too(capfd: pytest.CaptureFixture[str]) -> None:
    def report(_: FrameType | None) -> str:
        raise RuntimeError("changed size during iteration")

    with StackSignals(report):
        os.kill(os.getpid(), signal.SIGUSR1)
    assert "RuntimeError: changed size during iteration" in capfd.readouterr().err


def test_c13_everything_is_put_back() -> None:
    before = signal.getsignal(signal.SIGUSR1), signal.getsignal(signal.SIGQUIT)
    with StackSignals(lambda _: ""):
        assert signal.getsignal(signal.SIGQUIT) is not before[1]
        assert "perdure-stacks" in {thread.name for thread in threading.enumerate()}
    assert (signal.getsignal(signal.SIGUSR1), signal.getsignal(signal.SIGQUIT)) == before
    assert "perdure-stacks" not in {thread.name for thread in threading.enumerate()}
