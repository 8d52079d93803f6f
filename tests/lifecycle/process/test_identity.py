"""A process is known by more than its pid."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from perdure.lifecycle.process.identity import is_alive, this_process


def test_this_process_lives() -> None:
    assert is_alive(this_process())


def test_a_reused_pid_is_another_process() -> None:
    assert not is_alive(replace(this_process(), started=this_process().started - 1))


def test_nothing_is_claimed_about_other_hosts() -> None:
    assert is_alive(replace(this_process(), host="elsewhere", started=1))


@pytest.mark.parametrize("refusal", [FileNotFoundError, PermissionError])
@pytest.mark.parametrize(("answer", "alive"), [(None, True), (PermissionError, True), (ProcessLookupError, False)])
def test_a_process_that_proc_hides_is_gone_only_if_the_kernel_says_so(
    monkeypatch: pytest.MonkeyPatch, refusal: type[OSError], answer: type[OSError] | None, alive: bool
) -> None:
    """With `hidepid` the processes of other users are not to be seen in /proc."""
    other = replace(this_process(), pid=4_000_000, started=1)

    def hide(path: Path, **_: str) -> str:
        raise refusal(path)

    def kill(pid: int, signal: int) -> None:
        assert (pid, signal) == (other.pid, 0)
        if answer is not None:
            raise answer

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_text", hide)
        patch.setattr(os, "kill", kill)
        assert is_alive(other) is alive


def test_a_process_that_has_ended_is_gone_even_before_it_is_reaped() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    here = this_process()
    from perdure.lifecycle.process.identity import _start_time  # noqa: PLC0415 - only this test looks that deep

    identity = replace(here, pid=child.pid, started=_start_time(child.pid) or 0)
    assert is_alive(identity)
    child.kill()
    while is_alive(identity):  # until the kernel has made it a zombie
        pass
    assert not is_alive(identity)
    child.wait()
    assert not is_alive(identity)
    assert child.stdin is not None
    child.stdin.close()
