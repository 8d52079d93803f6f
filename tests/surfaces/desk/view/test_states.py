"""The colours of states."""

from __future__ import annotations

from perdure.domain.gate import BreakerState
from perdure.domain.jobs.states import JobState
from perdure.domain.worker import Phase
from perdure.storage.operate.bulk import BulkState
from perdure.surfaces.desk.view.states import COLOURS, colour


def test_every_state_of_jobs_workers_breakers_and_bulk_commands_has_a_colour() -> None:
    for states in (JobState, Phase, BreakerState, BulkState):
        assert not [state.value for state in states if state.value not in COLOURS]


def test_a_state_of_a_newer_release_is_shown_without_a_colour() -> None:
    assert colour("archived") == "none"
    assert colour("dead") == "dead"
