"""What a transition refuses, and what the constructors make."""

from __future__ import annotations

from itertools import product

import pytest
from msgspec.structs import replace
from tests.support.bench import a_claim
from tests.support.builders.jobs import A_FAILURE

from perdure.domain.flows.flow import Awaits
from perdure.domain.jobs.states import JobState, Reason, is_legal
from perdure.domain.jobs.transition import (
    Transition,
    arrived,
    called_off,
    died,
    of_parent,
    parked,
    past_gates,
    released,
    succeeded,
)


def test_f4_a_move_that_a_running_job_cannot_make_is_refused() -> None:
    claim = a_claim("greet")
    for to, reason in product(JobState, Reason):
        if is_legal(JobState.RUNNING, to, reason):
            Transition(claim, to, reason, 0, 0)
            continue
        with pytest.raises(ValueError, match=f"{claim.job_id}: no move from running to {to} "):
            Transition(claim, to, reason, 0, 0)


def test_f4_a_changed_move_is_checked_too() -> None:
    with pytest.raises(ValueError, match="no move from running to succeeded"):
        replace(released(a_claim("greet")), to=JobState.SUCCEEDED)


def test_a_wait_that_is_over_leaves_nothing_of_itself() -> None:
    awaits = Awaits(event="paid")
    move = parked(a_claim("greet"), Reason.AWAITING_EVENT, None, awaits, "waits for paid", (Awaits(family="f"),))
    ready = arrived(move, Reason.EVENT_CAME)
    assert (ready.to, ready.reason, ready.note) == (JobState.READY, Reason.EVENT_CAME, None)
    assert ready.all_awaits == ()


def test_a_move_keeps_what_it_is_not_about() -> None:
    died_once = died(a_claim("greet"), Reason.PERMANENT, A_FAILURE)
    assert called_off(died_once, "enough").failure == A_FAILURE
    assert of_parent(succeeded(a_claim("greet"), "1", ())).is_parent
    assert past_gates(released(a_claim("greet"))).has_passed
