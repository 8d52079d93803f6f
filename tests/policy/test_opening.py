"""C2, C3: the arithmetic of ramps, to the microsecond."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.bench import a_claim
from tests.support.builders.jobs import A_FAILURE, MINUTE, SECOND

from perdure import Opening, Polling
from perdure.domain.jobs.states import JobState, Reason, is_legal
from perdure.domain.jobs.transition import crashed, returning
from perdure.errors import PerdureError
from perdure.policy.opening import poll_interval, slow_start_limit

PHASES = {"5m": (60.0, 900.0), "10s": (2.0, 30.0)}  # the seconds of the nine, and of the rest


def seconds(waits: list[timedelta]) -> list[float]:
    return [wait.total_seconds() for wait in waits]


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("orphans", [1, 2, 10, 11, 1_000, 1_500])
def test_c2_every_orphan_has_its_exact_time(phase: str, orphans: int) -> None:
    """The first at once, nine spread over phase / 5, the others over phase × 3, and 1,000 in all."""
    warm, slow = PHASES[phase]
    waits = seconds(Opening(phase).waits(orphans))
    few, rest = min(orphans - 1, 9), max(min(orphans, 1_000) - 10, 0)
    expected = [0.0]
    expected += [number * warm / few for number in range(1, few + 1)]
    expected += [warm + number * slow / rest for number in range(1, rest + 1)]
    assert waits == pytest.approx(expected, abs=1e-6)
    assert len(waits) == min(orphans, 1_000)


def test_c2_the_times_in_figures() -> None:
    assert seconds(Opening().waits(10)) == pytest.approx([number * 60 / 9 for number in range(10)], abs=1e-6)
    assert seconds(Opening().waits(11))[-1] == 960
    ten_seconds = seconds(Opening("10s").waits(1_000))
    assert (ten_seconds[0], ten_seconds[9], ten_seconds[-1]) == (0, 2, 32)
    assert ten_seconds[10] == pytest.approx(2 + 30 / 990, abs=1e-6)


@given(st.integers(0, 5_000), st.integers(1, 2_000), st.integers(1, 10**9))
def test_c2_orphans_come_back_in_their_order(orphans: int, at_most: int, microseconds: int) -> None:
    opening = Opening(timedelta(microseconds=microseconds), at_most)
    waits = opening.waits(orphans)
    assert waits == sorted(waits)
    assert len(waits) == min(orphans, at_most)
    assert all(timedelta(0) <= wait <= opening.phase / 5 + opening.phase * 3 + SECOND / 10**6 for wait in waits)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"phase": 0}, "opening.phase"),
        ({"phase": "-1s"}, "opening.phase"),
        ({"phase": "soon"}, "opening.phase"),
        ({"at_most": 0}, "opening.at_most"),
        ({"at_most": True}, "opening.at_most"),
        ({"at_most": 1.5}, "opening.at_most"),
    ],
)
def test_c2_an_impossible_ramp_is_refused_by_name(given: dict[str, Any], field: str) -> None:
    with pytest.raises(PerdureError, match=field):
        Opening(**given)


def test_f2_a_crash_costs_a_crash_whenever_the_job_comes_back() -> None:
    at_once = crashed(a_claim("greet", crashes=1), A_FAILURE)
    later = returning(at_once, MINUTE)
    assert (later.to, later.reason, later.wait) == (JobState.RETRYING, Reason.CRASHED, MINUTE)
    assert (later.crashes, later.failures, later.failure) == (2, 0, A_FAILURE)
    assert is_legal(JobState.RUNNING, later.to, later.reason)
    assert returning(at_once, timedelta(0)) == at_once


@pytest.mark.parametrize(
    ("finished", "open_for", "expected"),
    [
        (0, timedelta(0), SECOND),
        (19, 10 * MINUTE, SECOND),
        (20, 2 * MINUTE - SECOND / 10**6, SECOND),
        (10**6, MINUTE, SECOND),
        (20, 2 * MINUTE, 10 * SECOND),
    ],
)
def test_c3_polling_is_quick_until_20_jobs_and_2_minutes_are_over(
    finished: int, open_for: timedelta, expected: timedelta
) -> None:
    assert poll_interval(Polling.RAMP, 10 * SECOND, finished, open_for) == expected


def test_c3_a_steady_interval_below_a_second_is_not_slowed_down() -> None:
    assert poll_interval(Polling.RAMP, SECOND / 20, 0, timedelta(0)) == SECOND / 20


def test_c3_fixed_is_always_the_same_and_none_is_never() -> None:
    for finished, open_for in ((0, timedelta(0)), (100, 10 * MINUTE)):
        assert poll_interval(Polling.FIXED, 10 * SECOND, finished, open_for) == 10 * SECOND
        assert poll_interval(Polling.NONE, 10 * SECOND, finished, open_for) is None


@given(st.integers(1, 10_000), st.integers(1, 10**9), st.integers(0, 10**9), st.integers(0, 10**9))
def test_slow_start_grows_from_one_to_full_and_never_shrinks(full: int, over: int, early: int, later: int) -> None:
    span = timedelta(microseconds=over)
    early, later = sorted((early, later))
    first, second = (slow_start_limit(full, span, timedelta(microseconds=at)) for at in (early, later))
    assert 1 <= first <= second <= full
    assert slow_start_limit(full, span, timedelta(0)) == 1
    assert slow_start_limit(full, span, span) == full


def test_slow_start_takes_each_step_at_its_instant() -> None:
    limits = [slow_start_limit(101, 100 * SECOND, number * SECOND) for number in range(102)]
    assert limits == [*range(1, 102), 101]
    assert slow_start_limit(7, timedelta(0), timedelta(0)) == 7
