"""What follows from a move for other jobs: the rules and texts that both engines apply."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from perdure.domain.jobs.states import JobState

HELD_KEY_WAIT: Final = timedelta(seconds=30)
"""After this wait a job looks again whether another one still holds its unique key. `hasten` makes it sooner."""

PARENT_ENDED: Final[Mapping[JobState, str]] = {
    JobState.SUCCEEDED: "parent job completed",
    JobState.DEAD: "parent job died",
    JobState.CANCELLED: "parent job cancelled",
}
"""Why children are cancelled that are not final when their parent ends, where their family says so."""

PARENT_DELETED: Final = "parent job deleted"
JOB_DELETED: Final = "job deleted"
NEXT_RUN_CAME: Final = "the schedule's next run has come"
"""Why a schedule cancels its last job, where its overlap policy says so."""
