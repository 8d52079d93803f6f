"""What a command returns: its dry run, or what it did."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from perdure.surfaces.mcp.answers.base import Answer, Part
from perdure.surfaces.mcp.quoting import Quoted


class SkippedJob(Part):
    """A job that the command leaves alone, and why."""

    job: str
    why: str


class CommandAnswer(Answer):
    """A dry run changes nothing: look at it, then make the same call with its `dry_run_id` until `expires_at`.

    `jobs` are those that it is, or was, done to. `more_match`: other jobs match too, beyond the limit of one call.
    """

    status: Literal["dry_run", "done"]
    summary: Quoted
    dry_run_id: str | None = None
    expires_at: datetime | None = None
    jobs: tuple[str, ...] = ()
    skipped: tuple[SkippedJob, ...] = ()
    more_match: bool = False
    notes: tuple[str, ...] = ()
