"""The pages that lead through the code name files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOUSE = ROOT / "src" / "perdure"
A_FILE = re.compile(r"(?<![\w/*<>-])(?:[\w*-]+/)+[\w*-]+\.(?:py|sql|md|toml|txt)\b")


@pytest.mark.parametrize("page", ["docs/explanation/architecture.md", "CONTRIBUTING.md"])
def test_every_file_that_is_named_exists(page: str) -> None:
    named = set(A_FILE.findall((ROOT / page).read_text("utf-8")))
    assert named
    assert not [name for name in named if not any(any(base.glob(name)) for base in (ROOT, HOUSE))]


def test_the_picture_shows_every_room() -> None:
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text("utf-8")
    rooms = [room.name for room in HOUSE.iterdir() if (room / "__init__.py").is_file()]
    rooms += [room.name for room in (HOUSE / "worker").iterdir() if (room / "__init__.py").is_file()]
    assert not [room for room in rooms if f"{room}/ " not in page]


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_the_table_of_engines_shows_every_room(engine: str) -> None:
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text("utf-8")
    rooms = [room.name for room in (HOUSE / "engines" / engine).iterdir() if (room / "__init__.py").is_file()]
    assert not [room for room in rooms if f"`{room}/`" not in page]
