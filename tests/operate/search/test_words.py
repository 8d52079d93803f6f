"""A search is split at its spaces; what stands in quotes holds no signs, and comes out as it was put in."""

from __future__ import annotations

import pytest

from perdure.operate.search.words import one_word, quoted, steps_of, text_of, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("  a  b ", ["a", "b"]),
        ('kind:"a b" c', ['kind:"a b"', "c"]),
        ('x="a \\" b"', ['x="a \\" b"']),
    ],
)
def test_spaces_split_and_quotes_hold_together(text: str, words: list[str]) -> None:
    assert [word.typed for word in words_of(text)] == words


def test_one_word_keeps_its_spaces() -> None:
    assert one_word("error~a b").typed == "error~a b"


@pytest.mark.parametrize(
    ("text", "steps", "sign", "value"),
    [
        ("args.user.id=42", ["args", "user", "id"], "=", "42"),
        ('args."a.b=c"!="x = y"', ["args", "a.b=c"], "!=", "x = y"),
        ("args.url=https://a.b/?c=d:e", ["args", "url"], "=", "https://a.b/?c=d:e"),
    ],
)
def test_the_first_sign_out_of_quotes_divides_a_word(text: str, steps: list[str], sign: str, value: str) -> None:
    [word] = words_of(text)
    assert (split := word.split()) is not None
    assert (steps_of(split[0]), *split[1:]) == (steps, sign, value)


@pytest.mark.parametrize("text", ["", "a b", 'say "hi"', "back\\slash", "end\\", "a=b", "a.b", "漢"])
def test_what_is_quoted_is_one_word_and_the_same_text(text: str) -> None:
    [word] = words_of(quoted(text, is_step=True))
    assert text_of(word.letters) == text
    assert steps_of(word.letters) == [text]
