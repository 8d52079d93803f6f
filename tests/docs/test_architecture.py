"""The pages that lead through the code name files that exist."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOUSE = ROOT / "src" / "perdure"
FULLEST_ROOM = 14
PAGES = ["docs/explanation/architecture.md", "CONTRIBUTING.md"]
A_FILE = re.compile(r"(?<![\w/*<>-])(?:[\w*-]+/)+[\w*-]+\.(?:py|sql|md|toml|txt)\b")
A_FOLDER = re.compile(
    r"(?<![\w/*<>.-])(?:(?:src|tests|docs|tools|engines|worker|storage|policy)/)(?:[\w*-]+/)+(?![\w*<{-])"
)


@pytest.mark.parametrize("what", [A_FILE, A_FOLDER], ids=["files", "folders"])
@pytest.mark.parametrize("page", PAGES)
def test_every_path_that_is_named_exists(page: str, what: re.Pattern[str]) -> None:
    named = set(what.findall((ROOT / page).read_text("utf-8")))
    assert named
    assert not [name for name in named if not any(any(base.glob(name)) for base in (ROOT, HOUSE))]


def test_the_picture_shows_every_room() -> None:
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text("utf-8")
    rooms = [room.name for room in HOUSE.iterdir() if (room / "__init__.py").is_file()]
    rooms += [room.name for room in (HOUSE / "worker").iterdir() if (room / "__init__.py").is_file()]
    assert not [room for room in rooms if f"{room}/ " not in page]


def test_the_picture_shows_every_module_at_the_top() -> None:
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text("utf-8")
    modules = {module.name for module in HOUSE.glob("*.py")} - {"__init__.py"}
    assert not modules - set(page.split())


def test_the_picture_shows_the_rooms_in_each_room() -> None:
    """A room within a room is in the picture by its name, at least in the line of the room around it."""
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text("utf-8")
    rooms = [init.parent for init in HOUSE.glob("*/*/__init__.py")]
    assert rooms
    assert not [str(room.relative_to(HOUSE)) for room in rooms if not re.search(rf"[ (]{room.name}/", page)]


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_the_table_of_engines_shows_every_room(engine: str) -> None:
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text("utf-8")
    rooms = [room.name for room in (HOUSE / "engines" / engine).iterdir() if (room / "__init__.py").is_file()]
    assert not [room for room in rooms if f"`{room}/`" not in page]


def test_decisions_have_numbers_of_their_own_and_titles_that_carry_them() -> None:
    files = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    numbers = [int(file.name.partition("-")[0]) for file in files]
    assert numbers == list(range(1, len(files) + 1))
    for number, file in zip(numbers, files, strict=True):
        assert file.read_text(encoding="utf-8").startswith(f"# {number}. "), file.name


def test_a_room_has_about_a_dozen_files() -> None:
    """A room that has grown too full gets rooms of its own: a newcomer must find a file by reading the names."""
    modules = Counter(str(module.parent.relative_to(HOUSE)) for module in HOUSE.rglob("*.py") if module.stem[0] != "_")
    assert modules
    assert {room: files for room, files in modules.items() if files > FULLEST_ROOM} == {}
