"""A process is known by more than its pid."""

from __future__ import annotations

import subprocess
import sys

from msgspec.structs import replace

from perdure.lifecycle.identity import is_alive, this_process


def test_this_process_lives() -> None:
    assert is_alive(this_process())


def test_a_reused_pid_is_another_process() -> None:
    assert not is_alive(replace(this_process(), started=this_process().started - 1))


def test_nothing_is_claimed_about_other_hosts() -> None:
    assert is_alive(replace(this_process(), host="elsewhere", started=1))


def test_a_process_that_has_ended_is_gone_even_before_it_is_reaped() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    here = this_process()
    from perdure.lifecycle.identity import _start_time  # noqa: PLC0415 - only this test looks that deep

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
