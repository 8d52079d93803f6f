"""Commands on jobs: requeue, cancel, run now.

A dry run selects the jobs. The confirming call selects again, and is refused unless it selects exactly the same jobs:
it never requeues a dead letter that the dry run did not list.
"""

from __future__ import annotations

from typing import Annotated

from mcp.types import InputRequiredResult
from pydantic import Field

from perdure.errors import ArgumentError
from perdure.operate.commands.actions import CANCEL, REQUEUE, RUN_NOW, Action
from perdure.operate.commands.job_commands import Which
from perdure.operate.desk import Desk
from perdure.operate.records import Changed
from perdure.operate.wording import listed, some
from perdure.storage.records import JobFilter
from perdure.surfaces.mcp.answers.commands import CommandAnswer
from perdure.surfaces.mcp.commands.confirming import Confirming, Planned
from perdure.surfaces.mcp.commands.parameters import DryRunId, Jobs, WhichJobs, Why
from perdure.surfaces.mcp.ground import Ask, Ground
from perdure.surfaces.mcp.quoting import name

Most = Annotated[int | None, Field(description="At most this many jobs, newest first.", ge=1)]


class JobCommands:
    """Acts on jobs."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._confirming = Confirming(ground)

    async def requeue(
        self,
        ask: Ask,
        why: Why,
        jobs: Jobs = None,
        search: WhichJobs = None,
        limit: Most = None,
        dry_run_id: DryRunId = None,
    ) -> CommandAnswer | InputRequiredResult:
        """Requeue finished jobs with all their attempts; a search without states means dead letters.

        Without dry_run_id it is a dry run.
        """
        return await self._do(ask, REQUEUE, jobs, search, limit, why, dry_run_id)

    async def cancel(
        self,
        ask: Ask,
        why: Why,
        jobs: Jobs = None,
        search: WhichJobs = None,
        limit: Most = None,
        dry_run_id: DryRunId = None,
    ) -> CommandAnswer | InputRequiredResult:
        """Cancel jobs that have not finished; running ones are asked to stop. Without dry_run_id it is a dry run."""
        return await self._do(ask, CANCEL, jobs, search, limit, why, dry_run_id)

    async def run_now(
        self,
        ask: Ask,
        why: Why,
        jobs: Jobs = None,
        search: WhichJobs = None,
        limit: Most = None,
        dry_run_id: DryRunId = None,
    ) -> CommandAnswer | InputRequiredResult:
        """Run parked jobs now, such as those that wait for a retry. Without dry_run_id it is a dry run."""
        return await self._do(ask, RUN_NOW, jobs, search, limit, why, dry_run_id)

    async def _do(
        self,
        ask: Ask,
        action: Action,
        jobs: list[str] | None,
        search: str | None,
        limit: int | None,
        why: str,
        dry_run_id: str | None,
    ) -> CommandAnswer | InputRequiredResult:
        async with self._ground.at_desk(ask, action.name) as desk:
            which = await self._which(desk, jobs, search)
            found = await desk.preview(action, which, limit=self._at_most(limit))
            plan = _planned(action, found, why, await _kinds(desk, found))
            if dry_run_id is None:
                return await self._confirming.dry_run(desk, plan)
            if (question := await self._confirming.confirm(ask, desk, plan, dry_run_id)) is not None:
                return question
            if not found.ids:
                return self._confirming.done(plan, f"No job was {action.verb}: none matched.")
            changed = await desk.act(action, found.ids, why=why)
            return self._confirming.done(
                _planned(action, changed, why), f"{some(len(changed.ids), 'job')} {action.verb}."
            )

    async def _which(self, desk: Desk, jobs: list[str] | None, search: str | None) -> Which:
        if (jobs is None) == (search is None):
            raise ArgumentError("jobs", "or search must be given, and only one of them")
        if jobs is None:
            if not (search or "").strip():
                raise ArgumentError("search", "must not be empty: a command needs at least one word, as in `kind:mail`")
            return await desk.filter(search or "")
        if len(jobs) > self._ground.settings.jobs_per_call:
            raise ArgumentError(
                "jobs",
                f"names {some(len(jobs), 'job')}, and one call may touch {self._ground.settings.jobs_per_call}: name "
                "fewer, or let a person use `perdure bulk`",
            )
        return jobs

    def _at_most(self, limit: int | None) -> int:
        most = self._ground.settings.jobs_per_call
        if limit is not None and limit > most:
            raise ArgumentError(
                "limit",
                f"is {limit:,}, and one call may touch {most:,} jobs: give less, or let a person use `perdure bulk`",
            )
        return limit or most


async def _kinds(desk: Desk, found: Changed) -> str:
    """The kinds of the selected jobs, for the person who decides."""
    tallies = await desk.count_by("kind", which=JobFilter(ids=found.ids)) if found.ids else []
    most_first = sorted(tallies, key=lambda tally: -tally.jobs)
    return listed(f"{tally.jobs} {name(tally.kind or '')}" for tally in most_first)


def _planned(action: Action, found: Changed, why: str, kinds: str = "") -> Planned:
    notes = []
    if found.asked:
        notes.append(f"{some(len(found.asked), 'job')} running: asked to stop.")
    if found.not_found:
        notes.append(f"There is no job {listed(found.not_found)}.")
    if found.more:
        notes.append("More jobs match than one call may change: only the newest are selected.")
    return Planned(
        tool=action.name,
        about={"jobs": sorted(found.ids)},
        why=why,
        summary=f"{action.name.replace('_', ' ').capitalize()} {some(len(found.ids), 'job')}{kinds and ': '}{kinds}.",
        jobs=found.ids,
        skipped=tuple((left.id, left.why) for left in found.unchanged),
        more_match=found.more,
        notes=tuple(notes),
    )
