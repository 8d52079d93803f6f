"""Tools about failures."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from perdure.domain.jobs.states import JobState
from perdure.storage.records import JobFilter, Page
from perdure.surfaces.mcp.answers.failures import FailureGroups, GroupExplained, group_line
from perdure.surfaces.mcp.answers.jobs import attempt_made, job_line
from perdure.surfaces.mcp.ground import Ask, Ground
from perdure.surfaces.mcp.tools.parameters import Limit, Search

_EXAMPLES_SHOWN: Final = 5

Before = Annotated[str | None, Field(description="The `next` of the answer before this one.", max_length=200)]
Fingerprint = Annotated[
    str, Field(description="The fingerprint of a group, as failure_groups gives it.", min_length=1, max_length=100)
]


class FailureTools:
    """Lists and explains groups of failures."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    async def failure_groups(
        self, ask: Ask, search: Search = "", limit: Limit = 10, before: Before = None
    ) -> FailureGroups:
        """List dead letters by group: same kind, error type and message. The group that failed last comes first."""
        async with self._ground.at_desk(ask, "failure_groups") as desk:
            quoter = self._ground.quoter()
            page = await desk.failure_groups(await desk.filter(search), limit=limit, before=before)
            groups = [group_line(quoter, group) for group in page.groups]
            return self._ground.sized(FailureGroups(groups=groups, next=page.next, only_newest=page.only_newest))

    async def explain_failure_group(self, ask: Ask, fingerprint: Fingerprint) -> GroupExplained:
        """Explain one group of failures: its trend, its newest dead letters, and the newest error with traceback."""
        async with self._ground.at_desk(ask, "explain_failure_group") as desk:
            quoter = self._ground.quoter()
            group = await desk.failure_group(fingerprint)
            which = JobFilter(fingerprint=group.fingerprint, states=JobState.DEAD)
            page = await desk.jobs(which, Page(_EXAMPLES_SHOWN))
            detail = await desk.job(page.jobs[0].id, lines=0) if page.jobs else None
            attempts = () if detail is None else detail.attempts
            return self._ground.sized(
                GroupExplained(
                    group=group_line(quoter, group),
                    last_attempt=attempt_made(quoter, attempts[-1]) if attempts else None,
                    example_args=None if detail is None else quoter.text(detail.job.args),
                    jobs=[job_line(quoter, job) for job in page.jobs],
                    search=f"group:{group.fingerprint} state:dead",
                )
            )
