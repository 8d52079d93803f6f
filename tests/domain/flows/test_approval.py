"""Questions of jobs, and the events that answer them."""

from __future__ import annotations

import pytest
from tests.support.builders.jobs import numbered_id

from perdure.domain.flows.approval import approval_asked, approval_event, approvals_before, refuse_answer
from perdure.errors import ArgumentError

ONE, TWO = numbered_id(1), numbered_id(2)


def test_an_event_leads_back_to_the_question_of_its_job_only() -> None:
    event = approval_event(ONE, "go: now?")
    assert approval_asked(ONE, event) == "go: now?"
    assert approval_asked(TWO, event) is None
    assert approval_asked(ONE, "paid:42") is None


def test_the_answers_of_older_jobs_lie_between_two_names() -> None:
    first, behind = approvals_before(TWO)
    assert first <= approval_event(ONE, "go") < behind <= approval_event(TWO, "go")
    first, behind = approvals_before(None)
    assert first <= approval_event(TWO, "go") < behind


def test_an_answer_is_not_emitted_as_an_ordinary_event() -> None:
    refuse_answer("approved")
    with pytest.raises(ArgumentError, match=r"give it with desk\.answer, or `perdure approve`"):
        refuse_answer(approval_event(ONE, "go"))
