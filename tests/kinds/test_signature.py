"""Arguments are checked where they are enqueued, by the rule that will read them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
import pytest
from pydantic import BaseModel

from perdure.errors import PayloadError, SettingsError
from perdure.kinds.signature import Signature
from perdure.worker.attempt.context.context import Context

LIMIT = 64 * 1024


@dataclass
class Address:
    street: str
    number: int


class Point(msgspec.Struct):
    x: float
    y: float


class Order(BaseModel):
    id: int
    lines: list[str]


class Measured(msgspec.Struct):
    value: float | None


class Reported(BaseModel):
    value: float | None


class Parcel:
    """What JSON cannot hold."""


def signature(handler: Any) -> Signature:
    return Signature(handler, Context)


def round_trip(handler: Any, *args: Any, **kwargs: Any) -> Any:
    plan = signature(handler)
    return plan.decode(plan.encode(plan.bind(args, kwargs), LIMIT))


def rich(
    address: Address, point: Point, order: Order, key: UUID, at: datetime, price: Decimal, note: str | None = None
) -> None: ...


def test_rich_types_come_back_as_they_went_in() -> None:
    values = (
        Address("Main", 5),
        Point(1.5, -2),
        Order(id=7, lines=["a", "b"]),
        UUID("01890000-0000-7000-8000-000000000001"),
        datetime(2026, 3, 29, 1, 30, tzinfo=UTC),
        Decimal("10.10"),
    )
    assert round_trip(rich, *values) == ((*values, None), {})


def test_document_is_an_object_by_parameter_name() -> None:
    def send(channel: str, text: str, urgent: bool = False) -> None: ...

    plan = signature(send)
    assert plan.encode(plan.bind(("#ops", "disk full"), {}), LIMIT) == '{"channel":"#ops","text":"disk full"}'


def test_arguments_left_out_take_the_default_of_the_code_that_runs() -> None:
    def old(n: int) -> None: ...
    def new(n: int, *, mode: str = "fast", seen: list[int] = []) -> None: ...  # noqa: B006 - a default may be mutable

    stored = signature(old).encode({"n": 1}, LIMIT)
    assert signature(new).decode(stored) == ((1,), {"mode": "fast", "seen": []})


def test_context_is_not_an_argument() -> None:
    def by_name(ctx: Any, n: int) -> None: ...
    def by_type(context: Context, n: int) -> None: ...

    for handler in (by_name, by_type):
        assert signature(handler).takes_context
        assert signature(handler).names == ("n",)


@pytest.mark.parametrize(
    ("args", "kwargs", "field", "problem"),
    [
        ((), {}, "argument n", "missing"),
        ((1, "x", 3), {}, "arguments", "takes 2, got 3"),
        ((1,), {"m": 2}, "argument m", r"not one of .*handler\(n, s\)$"),
        ((1,), {"n": 2}, "argument n", "twice"),
        (("one",), {}, "argument n", "expected `int`, got `str`"),
        ((1, 5), {}, "argument s", "expected `str`, got `int`"),
        ((1, object()), {}, "argument s", "cannot be stored"),
        ((1, "x" * LIMIT), {}, "argument s", "bytes"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(
    args: tuple[Any, ...], kwargs: dict[str, Any], field: str, problem: str
) -> None:
    def handler(n: int, s: str = "") -> None: ...

    plan = signature(handler)
    with pytest.raises(PayloadError, match=problem) as caught:
        plan.encode(plan.bind(args, kwargs), LIMIT)
    assert caught.value.field == field


@pytest.mark.parametrize(
    "value",
    [
        *(math.nan, math.inf, -math.inf, [1.5, math.nan], {"a": {"b": (math.inf,)}}),
        *(Measured(math.nan), Reported(value=math.inf), [None, {math.inf}]),
    ],
)
def test_a_number_that_json_does_not_know_is_refused_and_not_stored_as_null(value: Any) -> None:
    def handler(before: Any, value: Any) -> None: ...

    with pytest.raises(PayloadError, match="NaN and infinity cannot be stored as JSON") as caught:
        signature(handler).encode({"before": None, "value": value}, LIMIT)
    assert caught.value.field == "argument value"


def test_nothing_is_nothing_and_no_number() -> None:
    def handler(measured: Measured, words: list[str | None]) -> None: ...

    values = (Measured(None), [None, "null", "NaN"])
    assert round_trip(handler, *values) == (values, {})


def test_a_type_that_cannot_be_read_back_names_its_argument() -> None:
    def handler(weight: int, parcel: Parcel) -> None: ...

    with pytest.raises(PayloadError, match=r"values of type .*Parcel cannot be read from JSON") as caught:
        signature(handler).encode({"weight": 1, "parcel": 2}, LIMIT)
    assert caught.value.field == "argument parcel"


def test_annotations_that_name_nothing_are_reported_by_handler() -> None:
    def handler(parcel: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821 - the mistake that is meant

    with pytest.raises(SettingsError, match=r"^annotations of .*handler cannot be resolved: name 'Missing'"):
        signature(handler).encode({"parcel": 1}, LIMIT)


def test_nested_values_are_named_with_their_path() -> None:
    def handler(address: Address) -> None: ...

    with pytest.raises(PayloadError) as caught:
        signature(handler).encode({"address": {"street": "Main", "number": "five"}}, LIMIT)
    assert caught.value.field == "argument address.number"


@pytest.mark.parametrize(
    "document", ["", "{", "[]", "null", '{"n": 1, "x": 2}', '{"n": "1"}', "{}", '{"n": 1}trailing']
)
def test_a_poisoned_document_is_a_payload_error(document: str) -> None:
    def handler(n: int) -> None: ...

    with pytest.raises(PayloadError):
        signature(handler).decode(document)


def test_a_name_at_the_beginning_of_a_message_keeps_its_letters() -> None:
    def handler(n: int) -> None: ...

    with pytest.raises(PayloadError, match="arguments JSON is malformed"):
        signature(handler).decode("{]")


def test_parameters_that_cannot_be_checked_are_refused_when_declared() -> None:
    def stars(*rest: int) -> None: ...
    def double(**rest: int) -> None: ...

    for handler, name in ((stars, r"\*rest"), (double, r"\*\*rest")):
        with pytest.raises(SettingsError, match=name):
            signature(handler)


def test_pydantic_rules_hold_when_the_document_is_read() -> None:
    def handler(order: Order) -> None: ...

    with pytest.raises(PayloadError):
        signature(handler).decode('{"order": {"id": "seven", "lines": []}}')
