"""Text of jobs for an agent."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from perdure.operate.attention.need import Need
from perdure.operate.records import Overview
from perdure.storage.operate.diagnosis import Severity
from perdure.surfaces.mcp.answers.figures import overview_now
from perdure.surfaces.mcp.quoting import NAME_LIMIT_CHARACTERS, Quoter, cleaned, name, sentence


def test_one_answer_has_a_limited_number_of_characters_which_earlier_texts_use_first() -> None:
    quoter = Quoter(10)
    shown = [quoter.text("abcdef", 4), quoter.text("abcdefgh"), quoter.text("x")]
    assert [(each.untrusted_text, each.cut_characters) for each in shown] == [("abcd", 2), ("abcdef", 2), ("", 1)]
    assert quoter.maybe(None) is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain words", "plain words"),
        ("a\x1b[31m\u202eb\u200b\x00", "a[31mb"),
        ("tag\U000e0041\U000e007f", "tag"),
        ("select\ufe01\U000e0101", "select"),
        ("line\u2028para\u2029", "line\npara\n"),
        ("tab\tline\n", "tab\tline\n"),
        ("👩\u200d🔬 ❤\ufe0f naïve 漢", "👩\u200d🔬 ❤\ufe0f naïve 漢"),
    ],
)
def test_invisible_characters_are_removed_and_words_stay(text: str, shown: str) -> None:
    assert cleaned(text) == shown


def test_a_name_is_one_short_line() -> None:
    assert name(" mail\n\tqueue\u202e ") == "mail queue"
    assert name("q" * NAME_LIMIT_CHARACTERS) == "q" * NAME_LIMIT_CHARACTERS
    assert name("q" * (NAME_LIMIT_CHARACTERS + 1)) == "q" * (NAME_LIMIT_CHARACTERS - 1) + "…"


def test_what_may_be_a_secret_is_masked_in_texts_and_sentences() -> None:
    text = "postgresql://shop:hunter2@db/orders failed"
    assert "hunter2" not in Quoter(1_000).text(text).untrusted_text
    assert "hunter2" not in sentence(text)
    assert len(sentence("x" * 1_000)) == 600


@pytest.mark.parametrize(("named", "about"), [("", "dead letters"), ("ab12", "dead letters ab12")])
def test_a_need_says_what_it_is_about_also_if_it_names_nothing(named: str, about: str) -> None:
    need = Need(
        severity=Severity.WARNING, about="dead letters", name=named, subject="Other dead letters", what="failed"
    )
    overview = Overview(at=datetime(2026, 3, 1, tzinfo=UTC), counts=(), workers=())
    assert [line.about for line in overview_now(Quoter(1_000), overview, [need], [], []).needs] == [about]
