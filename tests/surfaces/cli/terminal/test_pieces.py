"""The parts of lists and pages."""

from __future__ import annotations

import io

import pytest
from rich.console import RenderableType
from rich.text import Text

from perdure.surfaces.cli.terminal.output import console
from perdure.surfaces.cli.terminal.pieces import block, cell, columns, document, facts, section


def shown(piece: RenderableType) -> str:
    pipe = io.StringIO()
    console(pipe).print(piece)
    return pipe.getvalue()


def test_only_columns_that_may_give_way_are_cut_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    table = columns("id", "error", giving_way=("error",))
    table.add_row(cell("i" * 40), cell("e" * 100))
    [_, row] = shown(table).splitlines()
    assert row.startswith("i" * 40 + "  eee")
    assert row.endswith("…")
    assert len(row) <= 60


def test_foreign_text_cannot_forge_a_row() -> None:
    assert shown(cell("a\nb\x1b[31m")) == "a\\nb\\x1b[31m\n"
    assert shown(block("a\x1b[31m\nb")) == "a\\x1b[31m\nb\n"


def test_a_stored_document_is_laid_out_and_a_damaged_one_is_shown_as_it_is() -> None:
    assert shown(document('{"n":[1]}')) == '{\n  "n": [\n    1\n  ]\n}\n'
    assert shown(document("{oops")) == "{oops\n"
    assert "left out" in shown(document(str(list(range(1_000)))))


def test_a_section_is_indented_under_its_title() -> None:
    assert shown(section("Steps", facts([("a", Text("1")), ("long", Text("2"))]))) == "\nSteps\n  a     1\n  long  2\n"
