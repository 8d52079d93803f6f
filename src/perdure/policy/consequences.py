"""What a move means for other jobs: the rules and texts that both engines apply."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from perdure.domain.jobs.states import JobState

HELD_KEY_WAIT: Final = timedelta(seconds=30)
"""How long a job waits before it checks again whether another one holds its unique key. `hasten` shortens it."""

PARENT_ENDED: Final[Mapping[JobState, str]] = {
    JobState.SUCCEEDED: "parent job completed",
    JobState.DEAD: "parent job died",
    JobState.CANCELLED: "parent job cancelled",
}
"""Why children that are not final are cancelled when their parent ends, if their family says so."""

PARENT_DELETED: Final = "parent job deleted"
JOB_DELETED: Final = "job deleted"
NEXT_RUN_CAME: Final = "the schedule's next run has come"
"""Why a schedule cancels its previous job, if its overlap policy says so."""
