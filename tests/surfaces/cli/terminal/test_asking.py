"""On a terminal, a command on many jobs asks first."""

from __future__ import annotations

import asyncio
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.builders.jobs import job_in

from perdure.app.connect import store_for
from perdure.domain.jobs.states import JobState
from perdure.surfaces.cli.exits import Exit

PATIENCE = 60.0


@pytest.fixture
def url(tmp_path: Path) -> str:
    """An SQLite file with one dead letter."""
    where = f"sqlite:///{tmp_path / 'perdure.db'}"

    async def fill() -> None:
        store = store_for(where)
        await store.open()
        await store.migrate()
        await job_in(JobState.DEAD, store)
        await store.close()

    asyncio.run(fill())
    return where


def at_a_terminal(url: str, typed: str, *words: str) -> tuple[int, str]:
    """Run a command at a terminal of its own and type when it asks; its exit code and all that was on the screen.

    Where nothing is typed, the question is answered with Ctrl-C, and again after a second if it still stands there: one
    that comes in the instant before the terminal is read from is not heard, which no person is quick enough for.
    """
    ours, theirs = pty.openpty()
    environment = os.environ | {"PERDURE_URL": url, "TERM": "xterm-256color", "COLUMNS": "80"}
    process = subprocess.Popen(
        [sys.executable, "-m", "perdure", *words],
        stdin=theirs, stdout=theirs, stderr=theirs, env=environment, close_fds=True,
    )  # fmt: skip
    os.close(theirs)
    screen, asked_at, deadline = b"", 0.0, time.monotonic() + PATIENCE
    while (now := time.monotonic()) < deadline:
        if not select.select([ours], [], [], 0.1)[0]:
            if asked_at and not typed and now > asked_at + 1 and screen.rstrip().endswith(b"[y/N]:"):
                process.send_signal(signal.SIGINT)
                asked_at = now
            continue
        try:
            piece = os.read(ours, 4096)
        except OSError:  # the terminal is closed when the process has ended
            break
        screen += piece
        if b"[y/N]" in screen and not asked_at:
            if typed:
                os.write(ours, typed.encode())
            else:
                process.send_signal(signal.SIGINT)
            asked_at = now
    os.close(ours)
    return process.wait(PATIENCE), screen.decode()


@pytest.mark.parametrize("typed", ["", "\x04"], ids=["ctrl-c", "ctrl-d"])
def test_a_question_can_be_left_without_an_answer(url: str, typed: str) -> None:
    code, screen = at_a_terminal(url, typed, "dead", "purge", "--all")
    *_, question, answer = screen.splitlines()
    assert (code, "[y/N]" in question, "interrupted" in answer) == (Exit.FAILED, True, True)
    assert "[y/N]" not in answer


def test_a_no_changes_nothing(url: str) -> None:
    code, screen = at_a_terminal(url, "n\n", "dead", "purge", "--all")
    assert (code, "Nothing was purged" in screen) == (Exit.CONFLICT, True)
    assert "1 job and its history will be purged for good" in screen


def test_a_yes_does_it_and_a_terminal_has_colours(url: str) -> None:
    code, screen = at_a_terminal(url, "y\n", "dead", "requeue", "--all")
    assert code == Exit.OK
    assert "1 job requeued" in screen
    assert "\x1b[" in screen


def test_a_named_job_is_requeued_without_a_question(url: str) -> None:
    code, screen = at_a_terminal(url, "", "dead", "requeue", "--all", "--yes")
    assert code == Exit.OK
    assert "[y/N]" not in screen
