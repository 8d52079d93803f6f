"""The CPU profile: samples of all threads but the one that samples."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from types import CodeType, FrameType

import pytest

from perdure.lifecycle.process import profile
from perdure.lifecycle.process.profile import sample_profile


def spins(over: threading.Event) -> None:
    while not over.is_set():
        for _ in range(10_000):  # mostly here, hardly ever in `is_set`
            pass


@pytest.fixture
def busy_thread() -> Iterator[None]:
    """A thread that computes, and one that waits for it."""
    over = threading.Event()
    computes = threading.Thread(target=spins, args=(over,))
    waits = threading.Thread(target=over.wait)
    for thread in (computes, waits):
        thread.start()
    yield
    over.set()
    for thread in (computes, waits):
        thread.join()


@pytest.mark.usefixtures("busy_thread")
def test_c13_a_profile_names_the_function_that_computes_and_counts_who_waits_as_idle() -> None:
    found = sample_profile(0.2, 200)
    assert 0 < found.idle < found.samples
    assert any(line.function == "spins" and line.own > 0 for line in found.functions)
    assert any(stack.endswith("spins") or ";spins;" in stack for stack, _ in found.stacks)


@pytest.mark.usefixtures("busy_thread")
def test_no_other_thread_runs_on_while_stacks_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """On Python 3.11 this has ended a process with a segmentation fault."""
    before, seen, genuine = sys.getswitchinterval(), set[float](), profile._codes

    def codes(frame: FrameType | None) -> tuple[CodeType, ...]:
        seen.add(sys.getswitchinterval())
        return genuine(frame)

    monkeypatch.setattr(profile, "_codes", codes)
    sample_profile(0.1, 100)
    assert seen == {1.0}
    assert sys.getswitchinterval() == before
