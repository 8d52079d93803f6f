"""Waits that are bounded by progress, and not by how busy the machine is."""

from __future__ import annotations

import os
from itertools import count

import pytest
from tests.support.waiting import processor_time, while_progressing


def test_a_wait_lasts_as_long_as_there_is_progress() -> None:
    steps = count()
    assert while_progressing(lambda: next(steps) >= 20, lambda: next(steps), within=0.05)


def test_a_wait_ends_without_progress() -> None:
    with pytest.raises(AssertionError, match="no progress within"):
        while_progressing(lambda: False, lambda: "the same", within=0.05)


def test_a_wait_for_progress_that_leads_nowhere_ends_too() -> None:
    steps = count()
    with pytest.raises(AssertionError, match="progress, and nothing within"):
        while_progressing(lambda: False, lambda: next(steps), within=0.02)


def test_a_process_that_works_uses_the_processors() -> None:
    before = processor_time(os.getpid())
    assert before > 0
    assert while_progressing(lambda: processor_time(os.getpid()) > before, lambda: processor_time(os.getpid()))
