"""Which jobs count as the same one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from perdure.domain.jobs.job import OnConflict
from perdure.domain.jobs.states import ACTIVE, JobState
from perdure.errors import PayloadError, SettingsError
from perdure.policy.keys.uniqueness import KEY_LIMIT_CHARACTERS, Unique


def key(unique: Unique, kind: str = "audit", queue: str = "default", **arguments: Any) -> str:
    return unique.key_for(kind, queue, arguments).key


def test_e2_idempotency_is_by_active_state_and_for_five_minutes_after_death() -> None:
    unique = Unique(by=("url", "strategy"), dead_for="5m").key_for("audit", "default", {"url": "u", "strategy": "s"})
    assert unique.states == ACTIVE
    assert JobState.SUCCEEDED not in unique.states
    assert unique.dead_for == timedelta(seconds=300)
    assert unique.on_conflict is OnConflict.RETURN


def test_e1_the_same_url_and_strategy_give_the_same_key_every_time() -> None:
    unique = Unique(by=("url", "strategy"))
    one = key(unique, url="http://a", strategy="mobile", attempt=1)
    assert one == key(unique, attempt=2, strategy="mobile", url="http://a")
    assert one != key(unique, url="http://a", strategy="desktop", attempt=1)
    assert one.startswith("audit:")


def test_the_key_is_the_same_in_every_version() -> None:
    """Workers of two versions must agree on it: a change here breaks G7 during a deploy."""
    digest = sha256(b'["kind",["audit"],{"url":"http://a"}]').hexdigest()
    assert digest.startswith("2652290bcf53")
    assert key(Unique(by="url"), url="http://a") == f"audit:{digest}"


def test_without_by_every_argument_counts_and_with_none_only_the_kind() -> None:
    assert key(Unique(), a=1, b=2) != key(Unique(), a=1, b=3)
    assert key(Unique(by=()), a=1) == key(Unique(by=()), a=2)
    assert key(Unique(by=()), "audit") != key(Unique(by=()), "report")


def test_by_may_be_a_function_of_the_arguments() -> None:
    unique = Unique(by=lambda arguments: arguments["email"].lower())
    assert key(unique, email="A@b.c") == key(unique, email="a@B.c")


def test_the_scope_is_the_kind_the_queue_or_everything() -> None:
    by_kind, by_queue, everywhere = Unique(), Unique(scope="queue"), Unique(scope="global")
    assert key(by_kind, "a", "q1", x=1) == key(by_kind, "a", "q2", x=1)
    assert key(by_kind, "a", "q1", x=1) != key(by_kind, "b", "q1", x=1)
    assert key(by_queue, "a", "q1", x=1) == key(by_queue, "a", "q1", x=1)
    assert key(by_queue, "a", "q1", x=1) != key(by_queue, "a", "q2", x=1)
    assert key(everywhere, "a", "q1", x=1) == key(everywhere, "b", "q2", x=1)
    assert len({key(unique, "a", "a", x=1) for unique in (by_kind, by_queue, everywhere)}) == 3


def test_a_long_name_is_cut_and_still_distinguishes_kinds() -> None:
    one, other = key(Unique(scope="queue"), "k" * 500 + "1", "q" * 90), key(Unique(scope="queue"), "k" * 500 + "2")
    assert len(one) <= KEY_LIMIT_CHARACTERS
    assert one != other


@dataclass
class Point:
    x: int
    y: int


class Model(BaseModel):
    x: int


@pytest.mark.parametrize(
    "value",
    [
        Point(1, 2),
        Model(x=1),
        UUID(int=7),
        datetime(2026, 1, 1, tzinfo=UTC),
        Decimal("1.50"),
        {"b": [1, None], "a": {"z": 1, "y": 2}},
        {3, 1, 2},
        b"bytes",
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_text_that_a_job_can_carry_can_be_unique(value: object) -> None:
    assert key(Unique(), value=value) == key(Unique(), value=value)
    assert key(Unique(), value=value) != key(Unique(), value=None)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), JSON, max_size=5))
def test_the_order_of_arguments_does_not_matter(arguments: dict[str, Any]) -> None:
    turned = dict(reversed(arguments.items()))
    unique = Unique()
    assert unique.key_for("k", "q", arguments) == unique.key_for("k", "q", turned)


def test_an_unknown_argument_is_refused_when_the_job_is_declared() -> None:
    unique = Unique(by=("url", "strategie"))
    with pytest.raises(SettingsError, match=r"^unique\.by names strategie, .* are: url, strategy$"):
        unique.check(["url", "strategy"])
    unique.check(["url", "strategie"])
    Unique().check([])
    Unique(by=len).check([])


def test_a_missing_argument_and_one_that_is_no_json_are_refused_by_name() -> None:
    with pytest.raises(PayloadError, match=r"^url is missing"):
        key(Unique(by="url"), other=1)
    with pytest.raises(PayloadError, match=r"^unique\.by .*object"):
        key(Unique(), value=object())


def test_a_function_that_raises_is_reported_by_name() -> None:
    with pytest.raises(PayloadError, match=r"^unique\.by raised KeyError: 'url'$"):
        key(Unique(by=lambda arguments: arguments["url"]), other=1)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"by": 7}, "unique.by"),
        ({"by": (7,)}, "unique.by"),
        ({"states": ()}, "unique.states"),
        ({"states": ("asleep",)}, "unique.states"),
        ({"states": "ready"}, "unique.states"),
        ({"dead_for": "long"}, "unique.dead_for"),
        ({"dead_for": "5m", "states": ("ready", "dead")}, "unique.dead_for"),
        ({"on_conflict": "ignore"}, "unique.on_conflict"),
        ({"scope": "city"}, "unique.scope"),
    ],
)
def test_wrong_settings_are_refused_by_name(wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(SettingsError) as refused:
        Unique(**wrong)
    assert refused.value.field == field


def test_e2_a_window_of_nothing_is_no_window() -> None:
    assert Unique(dead_for=0).dead_for is None
    assert Unique(states=("ready", "running")).states == {JobState.READY, JobState.RUNNING}
