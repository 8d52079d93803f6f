"""How often, how soon and for how long: F1's table, row by row, without a second of sleep."""

from __future__ import annotations

import pickle
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.chance import seeded

from perdure.errors import SettingsError
from perdure.policy.failures import lineage
from perdure.policy.retries.backoff import Backoff
from perdure.policy.retries.jitter import Jitter
from perdure.policy.retries.retry import DEFAULT_RETRY, Retry, wait_after

POLLS = Backoff.table("5s", "15s", "45s", "2m", "5m")


def begins(retry: Retry, most: int = 50) -> list[tuple[float, float]]:
    return [(plan.earliest.total_seconds(), plan.latest.total_seconds()) for plan in retry.preview(most)]


def waits(retry: Retry, random: Random | None = None) -> list[float]:
    """All waits of a job whose every attempt fails at once."""
    elapsed, found = timedelta(0), list[float]()
    while not retry.is_last(len(found)):
        wait = retry.wait(len(found), elapsed, random or seeded())
        if wait is None:
            break
        found.append(wait.total_seconds())
        elapsed += wait
    return found


def test_a4_notifications_are_sent_five_times_in_all_after_1_2_4_8_minutes() -> None:
    retry = Retry(attempts=5, backoff=Backoff.exponential("1m", cap="1h"), jitter=Jitter.none())
    assert waits(retry) == [60, 120, 240, 480]
    assert begins(retry) == [(0, 0), (60, 60), (180, 180), (420, 420), (900, 900)]


@pytest.mark.parametrize(("max_retries", "expected"), [(3, [2, 4, 8]), (5, [2, 4, 8, 16, 32])])
def test_b9_max_retries_means_one_run_and_that_many_retries(max_retries: int, expected: list[int]) -> None:
    """The 8-minute retry does run."""
    retry = Retry(attempts=max_retries + 1, backoff=Backoff.exponential("2m", cap="1h"), jitter=Jitter.plus("30s"))
    found = waits(retry, seeded(3))
    assert len(found) == max_retries
    assert all(minutes * 60 <= wait <= minutes * 60 + 30 for minutes, wait in zip(expected, found, strict=True))


def test_b8_a_job_may_have_a_limit_of_its_own() -> None:
    retry = Retry(attempts=4)
    assert retry.limited_to(6).attempts == 6
    assert retry.limited_to(None) is retry
    assert retry.limited_to(6).backoff == retry.backoff
    with pytest.raises(SettingsError, match=r"^retry\.attempts must be 1 or more"):
        retry.limited_to(0)


def test_b14_the_timeline_shows_earliest_and_latest() -> None:
    retry = Retry(attempts=4, backoff=Backoff.exponential("2m", cap="1h"), jitter=Jitter.plus("30s"))
    assert begins(retry) == [(0, 0), (120, 150), (360, 420), (840, 930)]
    assert [plan.attempt for plan in retry.preview()] == [1, 2, 3, 4]


def test_c9_pulse_jobs_have_two_retries_without_a_wait() -> None:
    assert waits(Retry(attempts=3, backoff=Backoff.none(), jitter=Jitter.none())) == [0, 0]


def test_d4_polls_come_at_0_5_20_65_185_485_600_seconds() -> None:
    retry = Retry(attempts=None, backoff=POLLS, jitter=Jitter.none(), within="600s")
    assert [begin for begin, _ in begins(retry)] == [0, 5, 20, 65, 185, 485, 600]

    moment, polls, random = timedelta(0), [0.0], seeded()
    while wait := wait_after(len(polls) - 1, POLLS, Jitter.none(), random, timedelta(seconds=600) - moment):
        moment += wait
        polls.append(moment.total_seconds())
    assert polls == [0, 5, 20, 65, 185, 485, 600]


@given(st.randoms(use_true_random=False))
def test_d11_with_jitter_an_authority_sees_7_or_8_polls_and_the_last_at_the_deadline(random: Random) -> None:
    found = waits(Retry(attempts=None, backoff=POLLS, jitter=Jitter.ratio(0.2), within="10m"), random)
    assert len(found) + 1 in {7, 8}
    assert sum(found) == pytest.approx(600)


def test_e6_audits_run_three_times_after_30_and_60_seconds() -> None:
    assert waits(Retry(attempts=3, backoff=Backoff.exponential("30s"), jitter=Jitter.none())) == [30, 60]


def test_e9_webhooks_are_delivered_five_times_after_30_60_300_900_seconds_give_or_take_a_fifth() -> None:
    retry = Retry(attempts=5, backoff=Backoff.table(30, 60, 300, 900), jitter=Jitter.ratio(0.2))
    found = waits(retry, seeded(5))
    assert all(0.8 * n <= wait <= 1.2 * n for n, wait in zip([30, 60, 300, 900], found, strict=True))


def test_the_default_tries_five_times_within_some_20_minutes() -> None:
    nominal = Retry(jitter=Jitter.none())
    assert waits(nominal) == [15, 60, 240, 960]
    assert nominal.attempts == DEFAULT_RETRY.attempts == 5


def test_no_retry_is_one_attempt() -> None:
    assert waits(Retry.none()) == []
    assert begins(Retry.none()) == [(0, 0)]


def test_f1_a_wait_is_clipped_to_the_deadline_and_a_failure_at_it_is_final() -> None:
    retry = Retry(attempts=None, backoff=Backoff.fixed("5m"), jitter=Jitter.none(), within="8m")
    assert retry.wait(0, timedelta(minutes=1), seeded()) == timedelta(minutes=5)
    assert retry.wait(1, timedelta(minutes=6), seeded()) == timedelta(minutes=2)
    assert retry.wait(2, timedelta(minutes=8), seeded()) is None
    assert retry.wait(2, timedelta(minutes=9), seeded()) is None


def test_a_wait_asked_for_replaces_the_backoff_but_not_the_deadline() -> None:
    retry = Retry(backoff=Backoff.fixed("5m"), within="8m")
    assert retry.wait(0, timedelta(0), seeded(), timedelta(seconds=7)) == timedelta(seconds=7)
    assert retry.wait(0, timedelta(0), seeded(), timedelta(hours=1)) == timedelta(minutes=8)
    assert retry.wait(0, timedelta(minutes=8), seeded(), timedelta(0)) is None


def test_an_endless_policy_previews_only_so_much() -> None:
    assert len(Retry(attempts=None).preview()) == 20


class RateLimitedError(ConnectionError):
    """More specific than what it derives from."""


def test_b14_the_most_specific_error_chooses_its_own_backoff() -> None:
    patient = Retry(attempts=9, backoff=Backoff.fixed("1h"))
    retry = Retry(
        attempts=4,
        within="1d",
        permanent=ValueError,
        by_error={OSError: Backoff.fixed("10s"), RateLimitedError: patient, UnicodeError: Backoff.none()},
    )
    by_os = retry.for_error(lineage(ConnectionResetError))
    assert by_os is not None
    assert (by_os.backoff, by_os.attempts, by_os.within) == (Backoff.fixed("10s"), 4, timedelta(days=1))
    assert retry.for_error(lineage(RateLimitedError)) is patient
    assert retry.for_error(lineage(ValueError)) is None
    by_unicode = retry.for_error(lineage(UnicodeDecodeError))
    assert by_unicode is not None
    assert by_unicode.backoff == Backoff.none()
    assert retry.for_error(lineage(KeyError)) is retry
    assert retry.for_error(()) is retry


def test_policies_are_values() -> None:
    def make() -> Retry:
        return Retry(attempts=3, within="1h", permanent=(ValueError,), by_error={OSError: Backoff.none()})

    assert make() == make()
    assert hash(make()) == hash(make())
    assert pickle.loads(pickle.dumps(make())) == make()  # noqa: S301 - our own bytes
    with pytest.raises(AttributeError):
        make().attempts = 7  # type: ignore[misc]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"attempts": 0}, "retry.attempts"),
        ({"attempts": True}, "retry.attempts"),
        ({"attempts": 2.5}, "retry.attempts"),
        ({"within": 0}, "retry.within"),
        ({"within": "later"}, "retry.within"),
        ({"priority": 10}, "retry.priority"),
        ({"priority": True}, "retry.priority"),
        ({"backoff": "1m"}, "retry.backoff"),
        ({"jitter": 0.1}, "retry.jitter"),
        ({"permanent": ("ValueError",)}, "retry.permanent"),
        ({"permanent": int}, "retry.permanent"),
        ({"by_error": {OSError: "1m"}}, "retry.by_error"),
        ({"by_error": {"OSError": Backoff.none()}}, "retry.by_error"),
        ({"permanent": OSError, "by_error": {OSError: Backoff.none()}}, "retry.by_error"),
        ({"by_error": {OSError: Retry(permanent=ValueError)}}, "retry.by_error"),
    ],
)
def test_wrong_settings_are_refused_by_name(wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(SettingsError) as refused:
        Retry(**wrong)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("policy", "most"),
    [
        (Retry(attempts=3), 3),
        (Retry(attempts=1, by_error={OSError: Retry(attempts=4), KeyError: Retry(attempts=2)}), 4),
        (Retry(attempts=6, permanent=ValueError, by_error={OSError: Retry(attempts=4)}), 6),
        (Retry(attempts=1, by_error={OSError: Retry(attempts=None)}), None),
        (Retry(attempts=None, by_error={OSError: Retry(attempts=4)}), None),
    ],
)
def test_the_most_attempts_are_reported_over_all_rules(policy: Retry, most: int | None) -> None:
    assert policy.most_attempts == most
