"""Views as JSON."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec import UNSET, Struct, UnsetType
from tests.support.builders.views import a_pause

from perdure.surfaces.api.encoding import encoded


class Held(Struct):
    words: frozenset[str] = frozenset()
    cut: int | UnsetType = UNSET


def shown(value: Any) -> Any:
    return json.loads(encoded(value))


def test_a_stored_document_is_sent_as_json_and_not_as_text() -> None:
    assert shown(a_pause(args='{"n": 1e400, "b": [1]}'))["args"] == {"n": float("inf"), "b": [1]}
    assert shown(a_pause(args=None))["args"] is None


@pytest.mark.parametrize("damaged", ["{oops", "", "[" * 100_000])
def test_a_damaged_document_is_sent_as_text(damaged: str) -> None:
    assert shown(a_pause(args=damaged))["args"] == damaged


def test_documents_are_found_at_any_depth() -> None:
    pause = a_pause(args='{"a": 1}')
    assert shown({"pages": [(pause,)]})["pages"][0][0]["args"] == {"a": 1}


def test_sets_are_sorted_and_values_that_are_not_set_are_left_out() -> None:
    assert shown(Held(frozenset({"b", "a"}))) == {"words": ["a", "b"]}
    assert shown(Held(cut=3)) == {"words": [], "cut": 3}
    assert encoded([Held(frozenset("xyz"))]) == encoded([Held(frozenset("zyx"))])


def test_digits_of_a_stored_document_are_not_changed() -> None:
    """A number that a float cannot hold arrives as it was written."""
    text = '{"id": 12345678901234567890123, "price": 0.10}'
    assert text.encode() in encoded(a_pause(args=text))
    assert msgspec.json.decode(encoded(a_pause(args=text)))["args"]["price"] == 0.1
