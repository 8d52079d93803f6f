"""Where a test run keeps its files."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from tests.support.run import keep_files_in_memory


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.delenv("TMPDIR", raising=False)


def test_files_lie_in_memory_where_there_is_room(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", "")
    monkeypatch.delenv("TMPDIR")  # and is deleted again after the test
    keep_files_in_memory(tmp_path, room=1)
    assert Path(tempfile.gettempdir()) == tmp_path


def test_a_place_that_is_given_or_small_or_missing_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    usual = tempfile.gettempdir()
    keep_files_in_memory(tmp_path, room=2**62)
    keep_files_in_memory(tmp_path / "none", room=1)
    monkeypatch.setenv("TMPDIR", usual)
    keep_files_in_memory(tmp_path, room=1)
    assert tempfile.gettempdir() == usual
