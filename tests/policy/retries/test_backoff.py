"""F1's waits, before chance and deadlines."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.domain.duration import LONGEST_DURATION
from perdure.errors import SettingsError
from perdure.policy.retries.backoff import Backoff


def seconds(backoff: Backoff, failures: int) -> list[float]:
    return [backoff.wait(n).total_seconds() for n in range(failures)]


def test_a3_wait_doubles_from_one_minute_to_an_hour() -> None:
    waits = seconds(Backoff.exponential("1m", cap="1h"), 8)
    assert waits == [60, 120, 240, 480, 960, 1920, 3600, 3600]


def test_b3_wait_is_two_to_the_n_plus_one_minutes() -> None:
    assert seconds(Backoff.exponential("2m", cap="1h"), 3) == [120, 240, 480]


def test_b4_wait_is_capped_at_sixty_minutes_for_n_10() -> None:
    assert Backoff.exponential("2m", cap="60m").wait(10) == timedelta(minutes=60)


def test_c9_pulse_jobs_do_not_wait() -> None:
    assert seconds(Backoff.none(), 3) == [0, 0, 0]


def test_d2_polls_wait_5_15_45_120_300_and_then_always_300_seconds() -> None:
    backoff = Backoff.table("5s", "15s", "45s", "2m", "5m")
    assert seconds(backoff, 7) == [5, 15, 45, 120, 300, 300, 300]


def test_e6_audits_wait_30_and_60_seconds() -> None:
    assert seconds(Backoff.exponential("30s"), 2) == [30, 60]


def test_e9_webhooks_wait_30_60_300_900_seconds() -> None:
    assert seconds(Backoff.table(30, 60, 300, 900), 4) == [30, 60, 300, 900]


def test_a_fixed_wait_stays() -> None:
    assert seconds(Backoff.fixed("10s"), 3) == [10, 10, 10]


def test_f1_a_billion_failures_do_not_overflow() -> None:
    assert Backoff.exponential("1m", cap="1h").wait(10**9) == timedelta(hours=1)
    assert Backoff.exponential("1m").wait(10**9) == LONGEST_DURATION
    assert Backoff.exponential("1ms", factor=1.0001).wait(10**400) == LONGEST_DURATION
    assert Backoff.table("5s").wait(10**9) == timedelta(seconds=5)
    assert Backoff.exponential(0).wait(10**9) == timedelta(0)


def test_a_slow_factor_keeps_growing_to_its_cap() -> None:
    backoff = Backoff.exponential("1s", factor=1.1, cap="1h")
    assert backoff.wait(80) == timedelta(seconds=1.1**80)
    assert backoff.wait(100) == timedelta(hours=1)


@given(
    base=st.timedeltas(min_value=timedelta(0), max_value=timedelta(hours=1)),
    factor=st.floats(min_value=1, max_value=1e6),
    cap=st.timedeltas(min_value=timedelta(hours=1), max_value=timedelta(days=30)),
    n=st.integers(min_value=0, max_value=10**12),
)
def test_f1_waits_never_shrink_and_stay_within_base_and_cap(
    base: timedelta, factor: float, cap: timedelta, n: int
) -> None:
    backoff = Backoff.exponential(base, factor, cap)
    assert base <= backoff.wait(n) <= backoff.wait(n + 1) <= cap


@pytest.mark.parametrize("factor", [0, 0.5, -2, float("nan"), float("inf")])
def test_a_factor_below_one_is_refused(factor: float) -> None:
    with pytest.raises(SettingsError, match=r"^backoff\.factor "):
        Backoff.exponential("1s", factor)


def test_wrong_waits_are_refused_by_name() -> None:
    with pytest.raises(SettingsError, match=r"^backoff\.base "):
        Backoff.exponential("soon")
    with pytest.raises(SettingsError, match=r"^backoff\.cap .*first wait"):
        Backoff.exponential("1h", cap="1m")
    with pytest.raises(SettingsError, match=r"^backoff\.waits .*at least one"):
        Backoff.table()
    with pytest.raises(SettingsError, match=r"^backoff\.waits .*negative"):
        Backoff.table("5s", -1)
