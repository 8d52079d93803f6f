"""C4: short waits for the first errors, then 1 s doubling to 30 s; a success resets."""

from __future__ import annotations

from perdure.policy.outage_backoff import OutageBackoff


def test_c4_backs_off_after_five_errors_from_one_second_to_thirty() -> None:
    backoff = OutageBackoff()
    waits = [backoff.failed().total_seconds() for _ in range(12)]
    assert waits == [0.2, 0.2, 0.2, 0.2, 1, 2, 4, 8, 16, 30, 30, 30]


def test_c4_a_success_resets_and_shows_how_many_there_were() -> None:
    backoff = OutageBackoff()
    for _ in range(7):
        backoff.failed()
    assert backoff.succeeded() == 7
    assert backoff.failed().total_seconds() == 0.2


def test_c4_errors_without_end_do_not_overflow() -> None:
    backoff = OutageBackoff()
    backoff.failures = 10**9
    assert backoff.failed().total_seconds() == 30
