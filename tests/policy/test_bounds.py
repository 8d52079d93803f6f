"""Bounds of what may be set for a job."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from perdure.errors import SettingsError
from perdure.policy.bounds import NO_BOUNDS, Bounds, checked_bounds
from perdure.policy.retries.retry import Retry

BOUNDS = Bounds(attempts=(2, 5), timeout=("1s", "10m"), crash_limit=(1, 3))


def test_both_ends_are_inside_and_no_limit_is_outside() -> None:
    checks: list[tuple[Callable[[Any], Any], list[Any], list[Any]]] = [
        (lambda value: BOUNDS.check_retry(Retry(attempts=value), "mail"), [2, 5], [1, 6, None]),
        (lambda value: BOUNDS.check_crash_limit(value, "mail"), [1, 3], [0, 4]),
        (
            lambda value: BOUNDS.check_timeout(value, "mail"),
            [timedelta(seconds=1), timedelta(minutes=10)],
            [timedelta(milliseconds=999), timedelta(minutes=11), None],
        ),
    ]
    for check, inside, outside in checks:
        for value in inside:
            check(value)
        for value in outside:
            with pytest.raises(SettingsError, match="of job mail must be from"):
                check(value)


def test_a_rule_for_one_error_is_bounded_too() -> None:
    with pytest.raises(SettingsError, match=r"retry\.attempts of job mail must be from 2 to 5, got 9"):
        BOUNDS.check_retry(Retry(attempts=3, by_error={ValueError: Retry(attempts=9)}), "mail")


def test_a_policy_that_a_function_reads_is_checked_each_time() -> None:
    attempts = iter([3, 9])
    source = BOUNDS.bounded(lambda: Retry(attempts=next(attempts)), "mail")
    assert callable(source)
    assert source().attempts == 3
    with pytest.raises(SettingsError, match="got 9"):
        source()
    with pytest.raises(SettingsError, match="got 9"):
        BOUNDS.bounded(Retry(attempts=9), "mail")


def test_without_bounds_everything_may_be_set() -> None:
    policy = Retry(attempts=None)
    assert NO_BOUNDS.check_retry(policy, "mail") is policy
    NO_BOUNDS.check_timeout(None, "mail")
    NO_BOUNDS.check_crash_limit(10**6, "mail")


@pytest.mark.parametrize(
    "given",
    [
        *(
            {"attempts": (5, 2)},
            {"attempts": (0, 2)},
            {"attempts": (True, 2)},
            {"attempts": [1, 2]},
            {"attempts": (1,)},
        ),
        *({"timeout": ("10m", "1s")}, {"timeout": (0, "1s")}, {"timeout": ("1s",)}, {"timeout": "1s"}),
        {"crash_limit": 3},
    ],
)
def test_bounds_that_cannot_hold_are_refused_by_name(given: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=rf"^bounds\.{next(iter(given))} must be two "):
        Bounds(**given)
    with pytest.raises(SettingsError, match="bounds must be Bounds, such as"):
        checked_bounds("bounds", given)
