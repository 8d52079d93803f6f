"""A result that cannot be kept is a warning, and no text of a transition shows a secret of the job."""

from __future__ import annotations

import pytest
from tests.support.bench import a_claim

from perdure.domain.jobs import transition
from perdure.domain.jobs.outcome import BadArguments, Done, Failed, Failure
from perdure.domain.jobs.states import Reason
from perdure.errors import PayloadError
from perdure.worker.attempt.outcomes import done, unreadable, without_secrets


def test_a_result_is_kept_as_json() -> None:
    assert done({"sum": 3}) == Done('{"sum":3}')


@pytest.mark.parametrize(
    ("result", "warning"),
    [
        (object(), "the result was not kept: "),
        ("x" * 1024 * 1024, "the result was not kept: 1048578 characters, 1048576 are allowed"),
    ],
    ids=["not JSON", "too long"],
)
def test_a_result_that_cannot_be_kept_does_not_fail_the_work(result: object, warning: str) -> None:
    outcome = done(result)
    assert outcome.result is None
    assert [text.startswith(warning) for text in outcome.warnings] == [True]


def test_texts_of_a_transition_hide_the_secrets_of_the_job_and_its_result_stays() -> None:
    claim = a_claim("login", args='{"card":{"$secret":"hunter2"}}')
    failed = transition.died(claim, Reason.EXHAUSTED, Failure("ValueError", "no hunter2", "line 1: hunter2"))
    shown = without_secrets(failed, None).failure
    assert (shown, "hunter2" in str(shown)) == (Failure("ValueError", "no ***", "line 1: ***"), False)
    kept = without_secrets(transition.succeeded(claim, '"hunter2"', ("took hunter2",)), None)
    assert (kept.result, kept.warnings) == ('"hunter2"', ("took ***",))


def test_arguments_that_do_not_fit_are_reported_from_types_that_fail() -> None:
    assert isinstance(unreadable(PayloadError("url", "must be text")), BadArguments)
    assert isinstance(unreadable(RuntimeError("a type of the app is broken")), Failed)
