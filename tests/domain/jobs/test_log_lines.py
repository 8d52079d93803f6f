"""Log lines that are kept with their job."""

from __future__ import annotations

from tests.support.builders.jobs import numbered_id
from tests.support.builders.views import NOON, a_claim

from perdure.domain.jobs.log_lines import LINE_LIMIT_CHARACTERS, NewLine, by_job, cut


def line(job: int, text: str, token: int = 1) -> NewLine:
    return NewLine(claim=a_claim(job_id=numbered_id(job), token=token), at=NOON, level="info", text=text)


def test_the_newest_lines_of_each_claim_are_kept_in_order_and_by_job() -> None:
    given = [line(2, "a"), line(1, "b"), line(2, "c"), line(2, "d"), line(1, "e", token=2)]
    kept = by_job(given, 2)
    assert [(place, one.text) for place, one in kept] == [(1, "b"), (1, "e"), (1, "c"), (2, "d")]
    assert by_job(given, 0) == []


def test_only_a_line_that_is_too_long_is_cut() -> None:
    assert cut("x" * LINE_LIMIT_CHARACTERS) == "x" * LINE_LIMIT_CHARACTERS
    assert cut("x" * (LINE_LIMIT_CHARACTERS + 1)) == "x" * (LINE_LIMIT_CHARACTERS - 1) + "…"
