"""Conditions on what jobs carry."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.domain.operate.condition import Condition
from perdure.errors import ArgumentError


def test_a_value_means_the_text_and_what_it_reads_as() -> None:
    def candidates(value: Any) -> tuple[Any, ...]:
        return Condition("args", ["n"], "=", value).candidates

    assert candidates("42") == candidates(42) == ("42", 42)
    assert candidates("true") == candidates(True) == ("true", True)
    assert candidates("null") == candidates(None) == ("null", None)
    for text in ("mail", '"42"', "[1]", " 42", "NaN", "1e999", ""):
        assert candidates(text) == (text,)


def test_greater_and_less_compare_numbers_only_with_a_number() -> None:
    numbers = {value: Condition("args", "n", ">", value).number for value in ("5", "1.5", "true", "null", "five", "")}
    assert numbers == {"5": 5, "1.5": 1.5, "true": None, "null": None, "five": None, "": None}


@pytest.mark.parametrize(
    ("op", "value", "needle"),
    [
        ("=", "Mail", "mail"),
        ("~", "Mail", "mail"),
        ("=", "42", "42"),
        ("=", str(10**15 - 1), str(10**15 - 1)),
        ("=", str(10**15), None),  # a database may write it as 1e15
        ("~", str(10**15), str(10**15)),
        ("=", "1e5", None),
        ("=", "a b", None),
        ("=", "x", None),
        ("!=", "mail", None),
        (">", "42", None),
    ],
)
def test_a_needle_is_found_in_every_document_that_meets_the_condition(op: str, value: str, needle: str | None) -> None:
    assert Condition("args", ["n"], op, value).needle == needle


def test_one_word_is_a_path_of_one_part_and_exists_has_no_value() -> None:
    assert Condition("args", "user") == Condition("args", ("user",), "exists", "ignored")
    assert str(Condition("args", ["user", "id"], "=", 42)) == "args.user.id=42"
    assert str(Condition("meta", ["tenant"])) == "meta.tenant exists"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("colour",), "has no field 'colour': use one of args, "),
        (("args", ["n"], "=="), "has no operator '==': use one of = !="),
        (("args", ["n"] * 17), "has a path of 17 parts; 16 are the most"),
        (("args", ["n", ""]), "has an empty part in the path 'args.n.'"),
        (("args", ["n" * 201]), "has a part of a path of 201 characters; 200 are the most"),
        (("args", ["n"], "=", "v" * 1_001), "has a value of 1001 characters; 1000 are the most"),
        (("args", ["n"], "=", "a\x00"), "has a value with characters that no stored text has"),
        (("args", ["\ud800"], "=", "a"), "has a part of a path with characters that no stored text has"),
        (("args", ["n"], "~", ""), "looks for an empty text in args.n"),
        (("args", ["n"], "=", [1]), r"compares with \[1\]: use a text, a number"),
        (("args", ["n"], "=", float("nan")), "compares with nan"),
        (("tags", ["eu"], "=", "x"), "tags have no path"),
        (("tags", [], ">", "x"), "tags have no path, and are compared by"),
        (("error", ["line"], "=", "x"), "error has no 'line': error.type, error.message or error"),
        (("error", ["type", "x"], "=", "x"), "error has no 'type.x'"),
    ],
)
def test_a_condition_that_cannot_be_meant_is_refused(given: tuple[Any, ...], said: str) -> None:
    with pytest.raises(ArgumentError, match=f"^where {said}"):
        Condition(*given)


def test_every_edge_is_allowed() -> None:
    Condition("args", ["n" * 200] * 16, "=", "v" * 1_000)
    Condition("error", ["type"], "=", "E")
    Condition("error", [], "~", "E")
    Condition("tags", [], "!=", "eu")
