"""What a process writes to its standard error is passed on, and its end is kept."""

from __future__ import annotations

import os

import pytest

from perdure.worker.isolation.stderr_tail import StderrTail


async def test_the_end_is_kept_and_all_is_passed_on(capfd: pytest.CaptureFixture[str]) -> None:
    tail = StderrTail()
    text = "begin " + "x" * 5_000 + " the end\n"
    os.write(tail.writer, text.encode())
    tail.started()
    tail.close()
    assert capfd.readouterr().err == text
    assert tail.text is not None
    assert (tail.text.endswith("x the end"), "begin" in tail.text, len(tail.text) <= 4_096) == (True, False, True)


async def test_who_wrote_nothing_has_no_last_words() -> None:
    tail = StderrTail()
    tail.started()
    tail.close()
    tail.close()
    assert tail.text is None
