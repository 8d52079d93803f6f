"""Refusals of values, in plain words."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, Struct

from perdure.surfaces.api.values import Instant
from perdure.surfaces.api.wanted import is_time, refusal


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Inner(Struct, forbid_unknown_fields=True):
    n: int


class Wanted(Struct, forbid_unknown_fields=True):
    must: int = 0
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 1
    share: Annotated[float, Meta(ge=0, le=1)] | None = None
    colour: Colour | None = None
    colours: tuple[Colour, ...] = ()
    by: Literal["kind", "queue"] = "kind"
    at: Instant | None = None
    name: Annotated[str, Meta(min_length=2)] = "ab"
    tags: Annotated[list[str], Meta(max_length=1)] = []
    either: int | str | None = None
    more: Annotated[int, Meta(gt=5)] = 6
    inner: Inner | None = None
    token: int | None = None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"must": "x"}, "must must be a whole number, got 'x'"),
        ({"must": None}, "must must be a whole number, got None"),
        ({"limit": 0}, "limit must be a whole number from 1 to 1,000, got 0"),
        ({"share": 2}, "share must be a number from 0 to 1, got 2"),
        ({"colour": "green"}, "colour must be one of red, blue, got 'green'"),
        ({"colours": ["red", "green"]}, "colours[1] must be one of red, blue, got"),
        ({"by": "state"}, "by must be one of kind, queue, got 'state'"),
        ({"at": "noon"}, "at must be a time with its zone, such as 2026-03-01T09:00:00Z, got 'noon'"),
        ({"at": "2026-03-01T09:00"}, "at must be a time with its zone"),
        ({"name": "a"}, "name must be text of at least 2 characters, got 'a'"),
        ({"tags": ["a", "b"]}, "tags must be a list of at most 1 item, got"),
        ({"either": []}, "either must be a whole number or text, got []"),
        ({"more": 5}, "more must be a whole number of at least 6, got 5"),
        ({"inner": {}}, "inner.n is missing"),
        ({"inner": {"n": 1, "m": 2}}, "inner.m is not known here: check its name"),
        ({"inner": 3}, "inner must be an object, got 3"),
        ({"nmae": "x"}, "nmae is not known here"),
    ],
)
def test_a_value_is_refused_with_its_field_and_what_it_must_be(given: dict[str, Any], said: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(given, Wanted)
    assert str(refusal(caught.value, Wanted, given)).startswith(said)


def test_a_value_with_the_name_of_a_secret_is_not_repeated() -> None:
    given = {"token": "hunter2"}
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(given, Wanted)
    assert "hunter2" not in str(refusal(caught.value, Wanted, given))


def test_a_time_is_recognised_also_where_it_may_be_null() -> None:
    assert is_time(Wanted, "at")
    assert not is_time(Wanted, "name")
    assert not is_time(Wanted, "unknown")
