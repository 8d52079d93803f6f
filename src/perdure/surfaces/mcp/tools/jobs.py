"""Tools about jobs."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from perdure.domain.jobs.states import FINAL
from perdure.errors import ArgumentError
from perdure.operate.views.retry_preview import preview_of_job, preview_of_kind
from perdure.storage.records import Page
from perdure.surfaces.mcp.answers.holding import RetriesAhead, retries_ahead
from perdure.surfaces.mcp.answers.jobs import (
    FoundJobs,
    JobExplained,
    WhyNotRunning,
    job_explained,
    job_line,
    why_short,
)
from perdure.surfaces.mcp.ground import Ask, Ground
from perdure.surfaces.mcp.tools.parameters import Job, Kind, Limit, Search

_LINES: Final = 20
_ATTEMPTS_PLANNED: Final = 20

Before = Annotated[str | None, Field(description="The `next` of the answer before this one.", max_length=100)]


class JobTools:
    """Finds and explains jobs."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    async def find_jobs(self, ask: Ask, search: Search = "", limit: Limit = 20, before: Before = None) -> FoundJobs:
        """Find jobs, newest first, in the search language of the desk."""
        async with self._ground.at_desk(ask, "find_jobs") as desk:
            quoter = self._ground.quoter()
            page = await desk.jobs(await desk.filter(search), Page(limit, before))
            jobs = [job_line(quoter, job) for job in page.jobs]
            return self._ground.sized(FoundJobs(jobs=jobs, next=page.next, searched_to=page.searched_to))

    async def explain_job(self, ask: Ask, job: Job) -> JobExplained:
        """Explain one job: state, arguments, failed attempts with tracebacks, steps, children, gates, log, why."""
        async with self._ground.at_desk(ask, "explain_job") as desk:
            detail = await desk.job(job, lines=_LINES)
            why = None if detail.job.state in FINAL else await desk.why(detail.job.id)
            return self._ground.sized(job_explained(self._ground.quoter(), detail, why))

    async def why_not_running(self, ask: Ask, job: Job) -> WhyNotRunning:
        """Say why a job does not run now, until when, and what to do about it."""
        async with self._ground.at_desk(ask, "why_not_running") as desk:
            quoter = self._ground.quoter()
            why = await desk.why(job)
            return self._ground.sized(WhyNotRunning(job=job_line(quoter, why.job), why=why_short(quoter, why)))

    async def preview_retries(
        self,
        ask: Ask,
        job: Annotated[str | None, Field(description="The id or ref of a job; or give a kind.", max_length=200)] = None,
        kind: Kind = None,
    ) -> RetriesAhead:
        """Show when a job, or a new job of a kind, would be retried if every attempt fails."""
        async with self._ground.at_desk(ask, "preview_retries") as desk:
            if (job is None) == (kind is None):
                raise ArgumentError("job", "or kind must be given, and only one of them")
            now = await desk.now()
            if job is not None:
                known = (await desk.job(job, lines=0)).job
                found = preview_of_job(self._ground.kinds, known, now, _ATTEMPTS_PLANNED)
                of = f"job {known.id}"
            elif self._ground.kinds is not None and kind is not None:
                found = preview_of_kind(self._ground.kinds, kind, now, _ATTEMPTS_PLANNED)
                of = f"kind {kind}"
            else:
                found, of = None, ""
            if found is None:
                raise ArgumentError(
                    "job" if job is not None else "kind",
                    "has its retry policy in the app's code, which is not loaded: start this server with the app, as "
                    "in `perdure mcp module:app`",
                )
            return self._ground.sized(retries_ahead(of, found))
