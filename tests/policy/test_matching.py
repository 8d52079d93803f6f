"""Whether a document meets conditions."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.domain.operate.condition import Condition
from perdure.policy.matching import meets, meets_of_error, meets_of_tags

ORDER = {"id": 42, "text": "42", "paid": True, "user": {"name": "Ada", "tags": ["EU", "vip"]}, "none": None}


def found(path: str, op: str = "exists", value: Any = None) -> bool:
    return meets(ORDER, [Condition("args", path.split("."), op, value)])


@pytest.mark.parametrize(
    ("path", "op", "value"),
    [
        ("id", "=", "42"),
        ("text", "=", "42"),
        ("paid", "=", "true"),
        ("none", "=", "null"),
        ("id", "!=", "43"),
        ("gone", "!=", "42"),
        ("user", "!=", "Ada"),
        ("user.name", "~", "aD"),
        ("user", "~", '"ada"'),
        ("user.tags.0", "=", "EU"),
        ("user.tags.-1", "=", "vip"),
        ("id", ">", "41"),
        ("id", "<", "42.5"),
        ("user.name", ">", "Aa"),
        ("none", "exists", None),
    ],
)
def test_a_value_that_meets_its_condition(path: str, op: str, value: Any) -> None:
    assert found(path, op, value)


@pytest.mark.parametrize(
    ("path", "op", "value"),
    [
        ("paid", "=", "1"),
        ("id", "=", "42.5"),
        ("id", "!=", "42"),
        ("user", "=", "Ada"),
        ("gone", "=", "null"),
        ("user.tags.2", "exists", None),
        ("user.tags.-3", "exists", None),
        ("user.tags.x", "exists", None),
        ("user.name.0", "exists", None),
        ("id", ">", "42"),
        ("paid", ">", "0"),
        ("text", ">", "41"),
        ("id", ">", "Aa"),
        ("gone", "~", "a"),
    ],
)
def test_a_value_that_does_not(path: str, op: str, value: Any) -> None:
    assert not found(path, op, value)


def test_all_conditions_must_hold_and_a_missing_document_meets_only_what_is_not() -> None:
    both = [Condition("args", ["id"], "=", 42), Condition("args", ["paid"], "=", "false")]
    assert meets(ORDER, both[:1])
    assert not meets(ORDER, both)
    assert not meets(None, both[:1])
    assert meets(None, [Condition("result", ["sum"], "!=", 3)])


def test_one_tag_is_enough_but_what_must_not_be_is_asked_of_all() -> None:
    assert meets_of_tags(["eu", "vip"], [Condition("tags", [], "=", "vip")])
    assert not meets_of_tags(["eu", "vip"], [Condition("tags", [], "!=", "vip")])
    assert meets_of_tags([], [Condition("tags", [], "!=", "vip")])
    assert not meets_of_tags([], [Condition("tags", [], "exists")])


def test_an_error_is_its_type_its_message_or_both() -> None:
    def error(path: list[str], op: str, value: str) -> bool:
        return meets_of_error("builtins.ValueError", "no such host", [Condition("error", path, op, value)])

    assert error(["type"], "=", "builtins.ValueError")
    assert error(["message"], "~", "NO SUCH")
    assert error([], "~", "error: no")
    assert not error(["type"], "~", "host")
    assert not meets_of_error(None, None, [Condition("error", [], "~", "x")])


def test_a_piece_of_a_secret_is_not_found() -> None:
    document = {"url": "postgresql://shop:hunter2@db/orders"}
    assert meets(document, [Condition("args", ["url"], "~", "orders")])
    assert not meets(document, [Condition("args", ["url"], "~", "hunter2")])
