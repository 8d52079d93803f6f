"""Signals that ask a process where it is; tests/surfaces/cli/workers/test_signals.py tests what real workers answer."""

from __future__ import annotations

import os
import signal
import subprocess
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


BUSY = """
import json, os, signal, threading, time
from perdure.lifecycle.process.stack_signals import StackSignals


def deep(left):
    return left and deep(left - 1)


def work():
    while True:
        deep(30)
        json.dumps({"a": [1, 2, 3]})
        [number for number in range(50)]


def be_asked():
    with StackSignals(lambda _: "all is well\\n"):
        for _ in range(4):
            threading.Thread(target=work, daemon=True).start()
        os.write(begun, b"!")
        time.sleep(60)


for _ in range(25):
    has_begun, begun = os.pipe()
    if not (child := os.fork()):
        be_asked()
    os.read(has_begun, 1)
    time.sleep(0.02)
    os.kill(child, signal.SIGQUIT)  # its main thread sleeps, and another one has the interpreter
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.slow
def test_c13_sigquit_is_answered_however_busy_the_other_threads_are() -> None:
    """To read the stacks of threads that run ended one process in ten with a segmentation fault, and no answer."""
    done = subprocess.run([sys.executable, "-c", BUSY], check=True, capture_output=True, text=True, timeout=200)
    assert done.stdout.split() == ["2"] * 25
    assert done.stderr == "all is well\n" * 25
