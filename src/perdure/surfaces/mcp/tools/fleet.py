"""Tools about schedules, gates, workers, questions and the audit trail."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

from pydantic import Field

from perdure.surfaces.mcp.answers.fleet import AuditTrail, WorkersNow, audit_line, worker_line
from perdure.surfaces.mcp.answers.holding import (
    GatesNow,
    QuestionsNow,
    SchedulesNow,
    breaker_line,
    pause_line,
    question_line,
    schedule_line,
    spent_line,
)
from perdure.surfaces.mcp.ground import Ask, Ground
from perdure.surfaces.mcp.tools.parameters import Limit

_ITEMS_SHOWN: Final = 50

ScheduleName = Annotated[
    str | None, Field(description="Only this schedule, with its next and last five times.", max_length=200)
]
OfJob = Annotated[str | None, Field(description="Only what was done to this job (id or ref).", max_length=200)]
Actor = Annotated[str | None, Field(description="Only what this actor did.", max_length=300)]
ActionName = Annotated[str | None, Field(description="Only this action, such as requeue.", max_length=100)]
Since = Annotated[datetime | None, Field(description="From this time on, with its zone.")]
Before = Annotated[int | None, Field(description="The `next` of the answer before this one.", ge=1)]


class FleetTools:
    """Shows what starts and runs jobs, what holds them back, and who did what."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    async def schedules(self, ask: Ask, name: ScheduleName = None) -> SchedulesNow:
        """List schedules with their next and last times, or show one schedule."""
        async with self._ground.at_desk(ask, "schedules") as desk:
            quoter = self._ground.quoter()
            found = [await desk.calendar.schedule(name)] if name is not None else await desk.calendar.details()
            lines = [schedule_line(quoter, detail) for detail in found[:_ITEMS_SHOWN]]
            return self._ground.sized(SchedulesNow(schedules=lines, more=len(found) - len(lines)))

    async def gates(self, ask: Ask) -> GatesNow:
        """List what holds jobs back: pauses and breakers; and the spending of each budget."""
        async with self._ground.at_desk(ask, "gates") as desk:
            quoter = self._ground.quoter()
            pauses, breakers = await desk.holds.pauses(), await desk.holds.breakers()
            budgets = await desk.holds.budgets()
            more = sum(max(len(found) - _ITEMS_SHOWN, 0) for found in (pauses, breakers, budgets))
            return self._ground.sized(
                GatesNow(
                    pauses=[pause_line(quoter, pause) for pause in pauses[:_ITEMS_SHOWN]],
                    breakers=[breaker_line(quoter, breaker) for breaker in breakers[:_ITEMS_SHOWN]],
                    budgets=[spent_line(spent) for spent in budgets[:_ITEMS_SHOWN]],
                    more=more,
                )
            )

    async def workers(self, ask: Ask) -> WorkersNow:
        """List workers with their queues, slots, running jobs and last heartbeat."""
        async with self._ground.at_desk(ask, "workers") as desk:
            found = await desk.workers()
            lines = [worker_line(worker) for worker in found[:_ITEMS_SHOWN]]
            return self._ground.sized(WorkersNow(workers=lines, more=len(found) - len(lines)))

    async def approvals(self, ask: Ask, limit: Limit = 20) -> QuestionsNow:
        """List the questions of jobs that wait for a person's answer."""
        async with self._ground.at_desk(ask, "approvals") as desk:
            quoter = self._ground.quoter()
            asking = await desk.approvals(most=limit)
            return self._ground.sized(QuestionsNow(questions=[question_line(quoter, each) for each in asking]))

    async def audit(
        self,
        ask: Ask,
        job: OfJob = None,
        actor: Actor = None,
        action: ActionName = None,
        since: Since = None,
        limit: Limit = 20,
        before: Before = None,
    ) -> AuditTrail:
        """Show who did what, when, why and from where, newest first."""
        async with self._ground.at_desk(ask, "audit") as desk:
            quoter = self._ground.quoter()
            page = await desk.audit(job=job, actor=actor, action=action, since=since, limit=limit, before=before)
            entries = [audit_line(quoter, entry) for entry in page.entries]
            return self._ground.sized(AuditTrail(entries=entries, next=page.next))
