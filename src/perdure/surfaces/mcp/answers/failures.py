"""Groups of failures as agents see them."""

from __future__ import annotations

from datetime import datetime

from perdure.operate.views.failure_groups import FailureGroup
from perdure.surfaces.mcp.answers.base import Answer, Part
from perdure.surfaces.mcp.answers.jobs import AttemptMade, JobLine
from perdure.surfaces.mcp.quoting import Quoted, Quoter, name


class GroupLine(Part):
    """Failures of the same kind, error type and message, ignoring numbers and ids.

    `dead` counts its dead letters now; `dead_is_at_least`: at least this many. `deaths_by_hour` has one number for each
    of the last 24 hours, oldest first.
    """

    fingerprint: str
    kind: str
    error_type: str
    message: Quoted
    dead: int
    dead_is_at_least: bool
    first_at: datetime
    last_at: datetime
    is_new: bool
    deaths_by_hour: str
    failed_attempts_last_24h: int
    attempts_of_newest: str


class FailureGroups(Answer):
    """Groups of dead letters, last failure first. `next`: give it as `before` for the next page.

    `only_newest`: only this many of the newest matching dead letters were read; older ones may form other groups.
    """

    groups: list[GroupLine]
    next: str | None
    only_newest: int | None


class GroupExplained(Answer):
    """One group: its newest dead letters, and the last failed attempt of the newest.

    `search` finds its jobs; the command tools accept it too.
    """

    group: GroupLine
    jobs: list[JobLine]
    last_attempt: AttemptMade | None
    example_args: Quoted | None
    search: str


def group_line(quoter: Quoter, group: FailureGroup) -> GroupLine:
    """A group of failures in a list."""
    return GroupLine(
        fingerprint=group.fingerprint,
        kind=name(group.kind),
        error_type=name(group.error_type),
        message=quoter.text(group.message, 500),
        dead=group.jobs,
        dead_is_at_least=group.jobs_capped,
        first_at=group.first_at,
        last_at=group.last_at,
        is_new=group.is_new,
        deaths_by_hour=" ".join(map(str, group.trend)),
        failed_attempts_last_24h=group.failures,
        attempts_of_newest=group.attempts,
    )
