"""Which command applies to which job, and why not."""

from __future__ import annotations

import pytest
from tests.support.builders.views import NOON, a_view

from perdure.domain.jobs.states import ACTIVE, FINAL, PARKED, JobState
from perdure.domain.stored_words import read_word
from perdure.errors import ArgumentError
from perdure.operate.commands.actions import (
    CANCEL,
    DELETE,
    PURGE_DEAD,
    REQUEUE,
    RUN_NOW,
    action_named,
    actions_for,
    mark_as,
)
from perdure.storage.operate.bulk import BulkParams
from perdure.storage.records import JobFilter


def test_each_action_applies_to_the_states_in_which_it_makes_sense() -> None:
    for action, states in ((CANCEL, ACTIVE), (REQUEUE, FINAL), (RUN_NOW, PARKED), (DELETE, frozenset(JobState))):
        assert {state for state in JobState if action.can(a_view(state=state))} == states


def test_a_filter_without_states_means_the_usual_ones_and_one_with_others_is_refused() -> None:
    assert REQUEUE.aim(JobFilter()).states == frozenset({JobState.DEAD})
    assert REQUEUE.aim(JobFilter(states=frozenset({JobState.SUCCEEDED}))).states == frozenset({JobState.SUCCEEDED})
    with pytest.raises(ArgumentError, match=r"^state running cannot be purged: only dead can$"):
        PURGE_DEAD.aim(JobFilter(states=frozenset({JobState.RUNNING, JobState.DEAD})))


def test_a_job_that_was_asked_to_stop_is_left_alone_unless_it_is_deleted_or_marked() -> None:
    asked = a_view(state=JobState.RUNNING, cancel_requested_at=NOON)
    assert not CANCEL.can(asked)
    assert CANCEL.why_not(asked) == "it was asked to stop before and has not ended yet"
    assert DELETE.can(asked)
    assert mark_as("seen").can(asked)


def test_a_skipped_job_is_reported_with_its_reason() -> None:
    assert RUN_NOW.why_not(a_view(state=JobState.DEAD)).startswith("it is dead; only scheduled, ")
    dead = a_view(state=JobState.DEAD, unique_key="order 7")
    assert REQUEUE.why_not(dead) == "another job holds its unique key"
    assert "try again" in REQUEUE.why_not(a_view(state=JobState.DEAD))
    foreign = a_view(state=read_word(JobState, "archived"))
    assert "only a newer release of perdure knows" in REQUEUE.why_not(foreign)


def test_an_action_is_found_by_its_name_with_its_parameters() -> None:
    for name in ("requeue", "cancel", "run_now", "purge", "delete"):
        assert action_named(name, BulkParams()).name == name
    assert action_named("mark", BulkParams(mark="seen")).verb == "marked"
    assert action_named("mark", BulkParams()).verb == "unmarked"
    assert action_named("reschedule", BulkParams(due_at=NOON)).possible == PARKED
    with pytest.raises(ArgumentError, match="run_at is missing"):
        action_named("reschedule", BulkParams())
    with pytest.raises(ArgumentError, match=r"action must be one of cancel, delete, mark, purge, .*got 'explode'"):
        action_named("explode", BulkParams())


def test_a_surface_offers_the_actions_that_all_listed_states_allow() -> None:
    assert "run_now" in actions_for(frozenset({JobState.RETRYING}))
    assert actions_for(frozenset({JobState.DEAD})) == {"requeue", "purge", "delete", "mark"}
    assert actions_for(frozenset({JobState.DEAD, JobState.READY})) == {"delete", "mark"}
    assert "cancel" in actions_for(None)
