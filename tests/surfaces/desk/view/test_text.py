"""Nothing in foreign text hides or misleads."""

from __future__ import annotations

import pytest

from perdure.surfaces.desk.view.text import is_odd, plain, short_url, visible


def test_hostile_text_is_escaped_and_nothing_in_it_hides() -> None:
    shown = visible("<b>\u202egpj.exe\u0007\u200b\n")
    assert "<b>" not in shown
    assert "&lt;b&gt;" in shown
    assert 'title="U+202E right-to-left override">\\u202e</span>' in shown
    assert 'title="U+0007 control character">\\x07</span>' in shown
    assert "\\u200b</span>" in shown
    assert not {"\u202e", "\u0007", "\u200b"} & set(shown)
    assert plain("a\u202eb\x1b[31m") == "a\\u202eb\\x1b[31m"
    assert plain("👩\u200d🔬 naïve\n") == "👩\u200d🔬 naïve\n"
    assert visible("x" * 3_000, 10) == "x" * 9 + "…"


@pytest.mark.parametrize("char", ["\u2028", "\u2029", "\u3164", "\u2800", "\ue000", "\ud800", "\U000e0041"])
def test_a_character_without_a_shape_becomes_a_visible_escape(char: str) -> None:
    """Line separators, blank letters, private and lone code points, and invisible tags."""
    assert is_odd(char)
    assert plain(f"a{char}b") == f"a{char.encode('unicode_escape').decode()}b"
    assert char not in visible(char)


def test_the_short_name_of_a_database_keeps_scheme_and_name_without_host_and_options() -> None:
    assert short_url("sqlite:///perdure.db") == "sqlite:///perdure.db"
    long = "postgresql://shop:secret@db.example.com:5432/orders?sslmode=require"
    assert short_url(long) == "postgresql://…/orders"
