"""Chance stays in its bounds and is even."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.chance import seeded

from perdure.errors import SettingsError
from perdure.policy.retries.backoff import Backoff
from perdure.policy.retries.jitter import Jitter

MINUTE = timedelta(minutes=1)


def draws(jitter: Jitter, wait: timedelta, count: int) -> list[float]:
    random = seeded(7)
    return [jitter.apply(wait, random).total_seconds() for _ in range(count)]


def test_b3_jitter_adds_up_to_thirty_seconds() -> None:
    assert all(120 <= drawn <= 150 for drawn in draws(Jitter.plus("30s"), 2 * MINUTE, 1000))


def test_b4_the_cap_comes_before_the_jitter() -> None:
    capped = Backoff.exponential("2m", cap="60m").wait(10)
    drawn = draws(Jitter.plus("30s"), capped, 1000)
    assert min(drawn) >= 3600
    assert 3625 < max(drawn) <= 3630


def test_b11_jitter_is_even_over_its_range_in_100_draws() -> None:
    extra = [drawn - 120 for drawn in draws(Jitter.plus("30s"), 2 * MINUTE, 100)]
    thirds = [sum(1 for drawn in extra if low <= drawn < low + 10) for low in (0, 10, 20)]
    assert sum(thirds) == 100
    assert all(20 <= third <= 47 for third in thirds)


@pytest.mark.parametrize("wait", [5, 15, 45, 120, 300, 30, 60, 900])
def test_d2_and_e9_jitter_is_twenty_percent_both_ways(wait: int) -> None:
    drawn = draws(Jitter.ratio(0.2), timedelta(seconds=wait), 500)
    assert min(drawn) == pytest.approx(wait * 0.8, rel=0.02)
    assert max(drawn) == pytest.approx(wait * 1.2, rel=0.02)
    assert all(wait * 0.8 <= each <= wait * 1.2 for each in drawn)


def test_a3_without_jitter_no_chance_is_asked() -> None:
    class Refusing:
        def uniform(self, a: float, b: float, /) -> float:
            raise AssertionError((a, b))

    assert Jitter.none().apply(MINUTE, Refusing()) == MINUTE
    assert Jitter.full().apply(timedelta(0), Refusing()) == timedelta(0)


def test_full_jitter_draws_from_the_whole_span() -> None:
    drawn = draws(Jitter.full(), MINUTE, 500)
    assert min(drawn) < 1
    assert max(drawn) > 59


SOME_JITTER = st.one_of(
    st.just(Jitter.none()),
    st.just(Jitter.full()),
    st.builds(Jitter.ratio, st.floats(min_value=0, max_value=1)),
    st.builds(Jitter.plus, st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=1))),
)


@given(
    SOME_JITTER,
    st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=36_500)),
    st.randoms(use_true_random=False),
)
def test_every_draw_lies_within_its_bounds(jitter: Jitter, wait: timedelta, random: Random) -> None:
    low, high = jitter.bounds(wait)
    assert timedelta(0) <= low <= jitter.apply(wait, random) <= high


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Jitter.ratio(20), "jitter.ratio"),
        (lambda: Jitter.ratio(-0.1), "jitter.ratio"),
        (lambda: Jitter.ratio(float("nan")), "jitter.ratio"),
        (lambda: Jitter.plus(-1), "jitter.plus"),
    ],
)
def test_wrong_jitter_is_refused_by_name(make: Callable[[], Jitter], field: str) -> None:
    with pytest.raises(SettingsError) as refused:
        make()
    assert refused.value.field == field
