"""What a command returns: the result of its dry run, or of the command."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from perdure.surfaces.mcp.answers.base import Answer, Part
from perdure.surfaces.mcp.quoting import Quoted


class SkippedJob(Part):
    """A job that the command skips, and why."""

    job: str
    why: str


class CommandAnswer(Answer):
    """A dry run changes nothing. To run the command, repeat the call with its `dry_run_id` before `expires_at`.

    `jobs` are the jobs that it changes or has changed. `more_match`: more jobs match than one call may change.
    """

    status: Literal["dry_run", "done"]
    summary: Quoted
    dry_run_id: str | None = None
    expires_at: datetime | None = None
    jobs: tuple[str, ...] = ()
    skipped: tuple[SkippedJob, ...] = ()
    more_match: bool = False
    notes: tuple[str, ...] = ()
