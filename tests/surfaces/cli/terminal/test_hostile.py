"""Whatever a job carries, a terminal shows it and does not obey it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.surfaces.cli.terminal.hostile import lines, one_line, safe_json

ATTACKS = [
    "\x1b[31mred\x1b[0m",  # colour
    "\x1b]0;owned\x07",  # window title
    "\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\",  # hyperlink
    "\x1b]52;c;cm0gLXJmIC8=\x07",  # clipboard
    "\x9b2J\x90q\x9c",  # eight-bit control sequences
    "line one\nline two\r\x0b\x0c",
    "\u2028\u2029\x85",
    "user\u202egnp.exe",  # bidi override
    "\u2066isolate\u2069 \u200fmark",
    "zero\u200bwidth\ufeff",
    "\x00\x07\x08\x7f",
    "\ud800 lone surrogate",
    "\U000e0041 tag",
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_that_a_terminal_obeys_is_left(attack: str) -> None:
    shown = one_line(attack)
    assert shown.isprintable()
    assert "\\" in shown


@pytest.mark.parametrize("attack", ATTACKS)
def test_json_says_the_same_without_a_character_that_a_terminal_obeys(attack: str) -> None:
    document = safe_json(json.dumps({attack: attack}, ensure_ascii=False))
    assert document.isprintable()
    assert json.loads(document) == {attack: attack}


@pytest.mark.parametrize("text", ["plain", "naïve 漢字 🦩", "[red]markup[/red]", "👩\u200d🔬", "a\u00a0b"])
def test_honest_text_is_left_alone(text: str) -> None:
    assert one_line(text) == text


def test_a_long_text_is_cut_with_a_sign() -> None:
    assert one_line("x" * 5_000, 10) == "x" * 9 + "…"


def test_a_text_of_many_lines_keeps_its_beginning_and_end() -> None:
    shown = lines("\n".join(str(number) for number in range(1_000)), most=10)
    assert (shown[0], shown[-1], len(shown)) == ("0", "999", 11)
    assert shown[5] == "… 990 lines left out …"


def test_lines_are_each_made_safe() -> None:
    assert lines("a\tb\r\n\x1b[2Jc\n") == ["a   b", "\\x1b[2Jc"]


@given(st.text())
def test_any_text_can_be_shown(text: str) -> None:
    shown = one_line(text)
    assert not any(ord(char) < 0x20 or 0x7F <= ord(char) <= 0x9F for char in shown)
    assert all(not any(ord(char) < 0x20 for char in line) for line in lines(text))


@given(st.text())
def test_any_text_goes_through_json_unharmed(text: str) -> None:
    assert json.loads(safe_json(json.dumps(text, ensure_ascii=False))) == text
