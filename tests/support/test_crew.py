"""The crew tells what went wrong, and goes on with the next test."""

from __future__ import annotations

import os

import pytest
from tests.support.crew import SIZE, Crew, Ready


def pid_after_start(ready: Ready) -> int:
    ready()
    return os.getpid()


def fail_alone(ready: Ready, number: int) -> None:
    if number == 1:
        raise ValueError("number one is not well")
    ready()


def test_four_processes_answer_in_order_and_a_failure_is_reported(crew: Crew) -> None:
    assert len({*crew.together(pid_after_start, [()] * SIZE), os.getpid()}) == SIZE + 1
    with pytest.raises(AssertionError, match="number one is not well"):
        crew.together(fail_alone, [(number,) for number in range(SIZE)])
    assert len(set(crew.together(pid_after_start, [()] * SIZE))) == SIZE
