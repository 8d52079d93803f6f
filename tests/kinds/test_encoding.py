"""Values to JSON and back."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel

from perdure import Secret
from perdure.kinds.encoding import document_of, encode, from_plain


class Order(BaseModel):
    number: int
    share: float | None = None


def test_a_pydantic_model_is_stored_by_its_own_rules_and_read_back() -> None:
    text = encode({"order": Order(number=7)})
    assert json.loads(text) == {"order": {"number": 7, "share": None}}
    assert from_plain(Order, {"number": 7}) == Order(number=7)


def test_a_secret_is_tagged_in_the_document_and_read_back_as_one() -> None:
    stored = json.loads(encode({"key": Secret("hunter2")}))["key"]
    assert stored != "hunter2"
    assert repr(from_plain(Secret, stored)) == repr(Secret("hunter2"))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    "wrap", [lambda v: v, lambda v: {"a": [1, v]}, lambda v: {1: v}, lambda v: Order(number=1, share=v)]
)
def test_a_number_that_json_does_not_know_is_refused_at_any_depth(value: float, wrap: Any) -> None:
    with pytest.raises(ValueError, match="NaN and infinity cannot be stored as JSON"):
        encode(wrap(value))


def test_null_and_the_word_null_are_stored() -> None:
    assert encode([None, "null", msgspec.Raw(b"null")]) == '[null,"null",null]'
    assert document_of("ü") == '"ü"'.encode()


def test_a_type_that_has_no_json_is_refused_by_name() -> None:
    with pytest.raises(NotImplementedError, match="values of type object cannot be stored as JSON"):
        encode(object())
    with pytest.raises(TypeError, match="values of type complex cannot be read from JSON"):
        from_plain(complex, 1)
    assert from_plain(object, [1]) == [1]
