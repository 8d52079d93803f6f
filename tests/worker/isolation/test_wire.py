"""What goes between a worker and the process of an attempt arrives as it was."""

from __future__ import annotations

import pytest

from perdure.domain.jobs import outcome as outcomes
from perdure.domain.jobs.outcome import BadArguments, Cancelled, Done, Failed, Outcome, Released
from perdure.worker.isolation.wire import Report, from_line, report_of, to_line

FAILURE = outcomes.Failure("ValueError", "no", None)


@pytest.mark.parametrize(
    "outcome",
    [
        Done("42", ("late",)),
        Failed(FAILURE, None, timed_out=True, kinds=("ValueError",)),
        outcomes.Permanent(FAILURE),
        BadArguments(FAILURE),
        outcomes.Paused("why"),
        Released(),
        Cancelled("no more"),
    ],
)
def test_every_outcome_survives_the_way_home(outcome: Outcome) -> None:
    assert from_line(to_line(report_of(outcome)), Report).outcome() == outcome
