"""Words of a newer release."""

from __future__ import annotations

from perdure.domain.jobs.states import JobState
from perdure.domain.stored_words import is_known, read_word


def test_a_word_of_a_newer_release_stays_as_written_and_equals_no_other() -> None:
    foreign = read_word(JobState, "archived")
    assert (str(foreign), foreign.value, foreign.name) == ("archived", "archived", "archived")
    assert isinstance(foreign, JobState)
    assert foreign not in set(JobState)
    assert not is_known(foreign)
    assert read_word(JobState, "dead") is JobState.DEAD
    assert is_known(JobState.DEAD)
