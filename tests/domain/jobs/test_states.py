"""The page on states says what the code says."""

from __future__ import annotations

from tools.state_diagram import PAGE, render

from perdure.domain.jobs.states import MOVES, JobState


def test_f4_the_page_is_current() -> None:
    """Out of date? Run `python tools/state_diagram.py`."""
    assert PAGE.read_text(encoding="utf-8") == render()


def test_f4_the_page_shows_every_state_and_every_move() -> None:
    page = render()
    assert all(f"| `{state}` |" in page for state in JobState)
    assert all(f"    {before or '[*]'} --> {after}\n" in page for before, after in MOVES)
