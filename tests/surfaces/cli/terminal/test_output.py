"""Output for people on a terminal, and for programs that read a pipe."""

from __future__ import annotations

import io
import json

import pytest
from rich.table import Table

from perdure.domain.jobs.states import JobState
from perdure.surfaces.cli.terminal.output import NARROWEST_COLUMNS, STATE_STYLE, complain, console, print_json


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def table(words: str) -> Table:
    shown = Table(box=None)
    shown.add_column("word")
    shown.add_column("rest")
    shown.add_row(words, "")
    return shown


def test_a_table_in_a_pipe_is_neither_wrapped_nor_padded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    pipe = io.StringIO()
    console(pipe).print(table("word " * 100))
    lines = pipe.getvalue().splitlines()
    assert len(lines) == 2
    assert not [line for line in lines if line.endswith(" ")]


def test_a_width_in_the_environment_holds_and_is_never_too_narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert console(io.StringIO()).width == 100
    monkeypatch.setenv("COLUMNS", "10")
    assert console(io.StringIO()).width == NARROWEST_COLUMNS
    monkeypatch.setenv("COLUMNS", "wide")
    assert console(io.StringIO()).width > 1_000


def test_words_in_brackets_are_text_and_no_markup() -> None:
    pipe = io.StringIO()
    console(pipe).print("[bold]x[/bold] :smile:")
    assert pipe.getvalue() == "[bold]x[/bold] :smile:\n"


def test_every_state_has_a_style() -> None:
    assert set(STATE_STYLE) == {state.value for state in JobState}


def test_json_has_no_character_that_a_terminal_interprets(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"said": "naïve \x1b[31m\u202e"})
    out = capsys.readouterr().out
    assert "naïve" in out
    assert not {"\x1b", "\u202e"} & set(out)
    assert json.loads(out) == {"said": "naïve \x1b[31m\u202e"}


def test_an_error_is_one_line_for_people_and_a_document_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    complain("no such\njob \x1b[31m", as_json=False, hint="Try: perdure jobs list")
    assert capsys.readouterr() == ("", "error: no such\\njob \\x1b[31m\nTry: perdure jobs list\n")
    complain("no such job", as_json=True, field="ID", hint="Try: perdure jobs list")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert json.loads(captured.err) == {"error": "no such job", "field": "ID"}
