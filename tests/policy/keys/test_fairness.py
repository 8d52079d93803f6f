"""By what jobs take turns: as it is declared, and the key that comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from perdure import App
from perdure.errors import PayloadError, SettingsError
from perdure.policy.keys.fairness import FairBy, FairShare


@pytest.mark.parametrize(
    ("by", "arguments", "key"),
    [
        ("tenant", {"tenant": "acme", "page": 1}, "acme"),
        ("tenant", {"tenant": 7, "page": 1}, "7"),
        (("tenant", "page"), {"tenant": "acme", "page": 1}, '["acme",1]'),
        (lambda arguments: arguments["tenant"].lower(), {"tenant": "ACME"}, "acme"),
        (lambda arguments: {"b": 1, "a": arguments["tenant"]}, {"tenant": 2}, '{"a":2,"b":1}'),
        (lambda _: None, {"tenant": "acme"}, None),
    ],
)
def test_the_key_is_the_value(by: FairBy, arguments: Mapping[str, Any], key: str | None) -> None:
    assert FairShare(by).key_for(arguments) == key


def test_a_long_value_gives_a_short_key_of_its_own() -> None:
    keys = {FairShare("tenant").key_for({"tenant": "x" * 1_000 + end}) for end in "ab"}
    assert [len(key or "") for key in keys] == [64, 64]


def test_a_job_carries_the_key_of_its_arguments_with_their_defaults() -> None:
    app = App("sqlite:///never-opened.db")

    @app.job(fair="tenant")
    async def convert(page: int, tenant: str = "nobody") -> None: ...

    @app.job
    async def plain(page: int) -> None: ...

    assert convert.call(1).job.fair_key == "nobody"
    assert convert.call(1, tenant="acme").job.fair_key == "acme"
    assert plain.call(1).job.fair_key is None


@pytest.mark.parametrize("by", ["tennant", ("tenant", "nobody")])
def test_a_name_that_is_no_parameter_is_refused(by: FairBy) -> None:
    app = App("sqlite:///never-opened.db")

    async def convert(tenant: str) -> None: ...

    with pytest.raises(SettingsError, match=r"fair.*parameters are: tenant"):
        app.job(fair=by)(convert)


@pytest.mark.parametrize("by", [7, (), ("tenant", 1)])
def test_what_names_nothing_is_refused(by: Any) -> None:
    with pytest.raises(SettingsError, match="fair must name arguments"):
        FairShare(by)


def test_a_function_that_raises_is_reported_by_name() -> None:
    with pytest.raises(PayloadError, match=r"^fair raised KeyError: 'tenant'$"):
        FairShare(lambda arguments: arguments["tenant"]).key_for({"page": 1})


@pytest.mark.parametrize("value", ["a\x00b", "\ud800", "two\nlines"])
def test_a_text_that_cannot_be_stored_as_it_is_still_has_a_key(value: str) -> None:
    key = FairShare("tenant").key_for({"tenant": value})
    assert key is not None
    assert key.isalnum()
    assert key != FairShare("tenant").key_for({"tenant": f"{value}!"})


def test_a_value_that_is_no_json_is_refused() -> None:
    with pytest.raises(PayloadError, match="fair"):
        FairShare(lambda _: object()).key_for({})
