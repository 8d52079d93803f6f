"""What may be asked for: words are accepted, and what cannot be meant is refused by field and value."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from perdure import ArgumentError, JobFilter, JobState, Page
from perdure.domain.jobs.ids import new_job_id

DEAD_OR_CANCELLED = frozenset({JobState.DEAD, JobState.CANCELLED})


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (("dead", "cancelled"), DEAD_OR_CANCELLED),
        (["cancelled", JobState.DEAD], DEAD_OR_CANCELLED),
        ({"dead", "cancelled"}, DEAD_OR_CANCELLED),
        ("dead", frozenset({JobState.DEAD})),
        (JobState.DEAD, frozenset({JobState.DEAD})),
        ((), frozenset()),
        (None, None),
    ],
)
def test_states_may_be_given_as_words(given: Any, kept: frozenset[JobState] | None) -> None:
    which = JobFilter(states=given)
    assert which.states == kept
    assert which.states is None or all(isinstance(state, JobState) for state in which.states)
    assert replace(JobFilter(kind="mail"), states=given).states == kept


@pytest.mark.parametrize("of", ["created", "finished"])
def test_a_span_that_ends_before_it_begins_is_refused(of: str) -> None:
    early, late = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)

    def between(first: datetime, last: datetime) -> JobFilter:
        given: dict[str, Any] = {f"{of}_after": first, f"{of}_before": last}
        return JobFilter(**given)

    assert between(early, late)
    for last in (early, early - timedelta(days=1)):
        with pytest.raises(ArgumentError, match=f"{of}_after must be earlier than {of}_before"):
            between(early, last)


def test_ids_may_be_one_or_several() -> None:
    one, other = new_job_id(), new_job_id()
    assert JobFilter(ids=one).ids == (one,)
    assert JobFilter(ids=[one.upper(), other]).ids == (one, other)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("states", "daed", "states must be among scheduled, ready, .*cancelled, got 'daed'"),
        ("states", ("dead", 3), "states must be among .*, got 3"),
        ("states", 3, "states must be states, such as .*, got 3"),
        ("ids", ["1"], "ids must be a UUID such as .*, got '1'"),
        ("ids", 7, "ids must be ids of jobs, such as .*, got 7"),
        ("kind", 3, "kind must be text, got 3"),
        ("kind", ("mail", "text"), "kind must be text, got"),
        ("queue", "", "queue must not be empty; leave it out"),
        ("tag", "a\x00b", "tag holds characters that no stored text has"),
        ("error", "\ud800", "error holds characters that no stored text has"),
        ("created_before", "yesterday", "created_before must be a datetime with a time zone, got 'yesterday'"),
        ("created_after", datetime(2026, 3, 1), "created_after needs a time zone"),  # noqa: DTZ001 - the point
        ("finished_before", 5, "finished_before must be a datetime"),
    ],
)
def test_a_condition_that_cannot_hold_is_refused_by_name(field: str, value: Any, said: str) -> None:
    with pytest.raises(ArgumentError, match=said) as refused:
        JobFilter(**{field: value})
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("page", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": True}, "limit"),
        ({"limit": "50"}, "limit"),
        ({"limit": 2.5}, "limit"),
        ({"before": "the first"}, "before"),
        ({"before": 3}, "before"),
        ({"number": 0}, "number"),
        ({"number": "2"}, "number"),
    ],
)
def test_a_page_that_cannot_be_is_refused_by_name(page: dict[str, Any], field: str) -> None:
    with pytest.raises(ArgumentError, match=f"^{field} must be") as refused:
        Page(**page)
    assert refused.value.field == field


def test_a11_pages_by_number_end_at_the_ten_thousandth_row() -> None:
    assert Page(50, number=200).skipped == 9_950
    assert Page().skipped == 0
    with pytest.raises(ArgumentError, match=r"^number 201 of 50 rows each reaches row 10,050, .*Page\(before=\.\.\.\)"):
        Page(50, number=201)
    with pytest.raises(ArgumentError, match=r"^number and before are both given: choose one"):
        Page(50, new_job_id(), 2)


def test_times_of_any_zone_are_taken() -> None:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    assert JobFilter(created_after=at, finished_before=at).created_after == at
