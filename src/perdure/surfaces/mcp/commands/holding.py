"""Commands on queues, kinds, schedules and questions: pause, resume, trigger, answer."""

from __future__ import annotations

from typing import Annotated

from mcp.types import InputRequiredResult
from pydantic import Field

from perdure.domain.duration import parse_duration
from perdure.domain.gate import Pause
from perdure.domain.jobs.states import ACTIVE
from perdure.errors import ArgumentError, ConflictError, NotFoundError
from perdure.operate.wording import listed, some
from perdure.storage.records import JobFilter
from perdure.surfaces.mcp.answers.commands import CommandAnswer
from perdure.surfaces.mcp.commands.confirming import Confirming, Planned
from perdure.surfaces.mcp.commands.parameters import DryRunId, Why
from perdure.surfaces.mcp.ground import Ask, Ground
from perdure.surfaces.mcp.tools.parameters import Job, Kind, Queue

For = Annotated[
    str | None, Field(description="For how long, such as 30m; without it until it is resumed.", max_length=20)
]
PauseId = Annotated[str | None, Field(description="The id of one pause, as gates gives it.", max_length=100)]
ScheduleName = Annotated[str, Field(description="The name of the schedule.", min_length=1, max_length=200)]
Question = Annotated[str, Field(description="The name of the question, as approvals gives it.", max_length=200)]
Approved = Annotated[bool, Field(description="True approves, False refuses.")]
AnswerNote = Annotated[str | None, Field(description="A note for the job.", max_length=500)]


class HoldCommands:
    """Commands on pauses, schedules and approvals."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._confirming = Confirming(ground)

    async def pause(
        self,
        ask: Ask,
        why: Why,
        queue: Queue = None,
        kind: Kind = None,
        duration: For = None,
        dry_run_id: DryRunId = None,
    ) -> CommandAnswer | InputRequiredResult:
        """Pause a queue or a kind, or a kind in a queue; running jobs continue. Without dry_run_id it is a dry run."""
        async with self._ground.at_desk(ask, "pause") as desk:
            if queue is None and kind is None:
                raise ArgumentError("queue", "or kind must be given: an agent cannot pause everything")
            span = None if duration is None else parse_duration("duration", duration)
            held = await desk.count(JobFilter(queue=queue, kind=kind, states=ACTIVE), cap=1_000)
            which = _called(queue, kind)
            until = "until it is resumed" if span is None else f"for {duration}"
            plan = Planned(
                tool="pause",
                why=why,
                about={"queue": queue, "kind": kind, "duration": duration},
                summary=f"Pause {which} {until}: {'at least ' * held.capped}{some(held.jobs, 'job')} not finished.",
            )
            if dry_run_id is None:
                return await self._confirming.dry_run(desk, plan)
            if (question := await self._confirming.confirm(ask, desk, plan, dry_run_id)) is not None:
                return question
            until_at = None if span is None else await desk.now() + span
            made = await desk.holds.pause(queue=queue, kind=kind, until=until_at, why=why)
            return self._confirming.done(plan, f"Paused {which}: pause {made.id}.")

    async def resume(
        self,
        ask: Ask,
        why: Why,
        pause: PauseId = None,
        queue: Queue = None,
        kind: Kind = None,
        dry_run_id: DryRunId = None,
    ) -> CommandAnswer | InputRequiredResult:
        """End one pause by its id, or all that name this queue, this kind, or both. Without dry_run_id: a dry run."""
        async with self._ground.at_desk(ask, "resume") as desk:
            if (pause is None) == (queue is None and kind is None):
                raise ArgumentError("pause", "or queue and kind must be given, and only one of the two ways")
            chosen = [each for each in await desk.holds.pauses() if _is_meant(each, pause, queue, kind)]
            if not chosen:
                raise NotFoundError("there is no such pause: the tool gates lists them")
            ids = sorted(each.id for each in chosen)
            named = listed(f"pause {each.id} of {_called(each.queue, each.kind)}" for each in chosen)
            plan = Planned(tool="resume", why=why, about={"pauses": ids}, summary=f"End {named}.")
            if dry_run_id is None:
                return await self._confirming.dry_run(desk, plan)
            if (question := await self._confirming.confirm(ask, desk, plan, dry_run_id)) is not None:
                return question
            resumed = await desk.holds.resume(ids, why=why)
            return self._confirming.done(plan, f"Ended {named}: {some(resumed.jobs, 'job')} became ready.")

    async def trigger_schedule(
        self, ask: Ask, name: ScheduleName, why: Why, dry_run_id: DryRunId = None
    ) -> CommandAnswer | InputRequiredResult:
        """Enqueue a job of a schedule now, in addition to its regular times. Without dry_run_id it is a dry run."""
        async with self._ground.at_desk(ask, "trigger_schedule") as desk:
            view = (await desk.calendar.schedule(name, shown=1)).view
            plan = Planned(
                tool="trigger_schedule",
                why=why,
                about={"schedule": name, "version": view.version},
                summary=f"Trigger schedule {name!r}: one job of kind {view.schedule.kind!r} in queue "
                f"{view.schedule.queue!r}.",
            )
            if dry_run_id is None:
                return await self._confirming.dry_run(desk, plan)
            if (question := await self._confirming.confirm(ask, desk, plan, dry_run_id)) is not None:
                return question
            fire = await desk.calendar.trigger(name, why=why)
            return self._confirming.done(plan, f"Triggered schedule {name!r}: job {fire.job_id}.")

    async def answer_approval(
        self,
        ask: Ask,
        job: Job,
        question: Question,
        approved: Approved,
        why: Why,
        note: AnswerNote = None,
        dry_run_id: DryRunId = None,
    ) -> CommandAnswer | InputRequiredResult:
        """Answer a job's question; the first answer is final. Without dry_run_id it is a dry run."""
        async with self._ground.at_desk(ask, "answer_approval") as desk:
            known = (await desk.job(job, lines=0)).job
            if question not in (open_ones := await desk.asks(known.id)):
                asked = f"its open questions are {listed(map(repr, open_ones))}" if open_ones else "it asks nothing now"
                raise ConflictError(f"job {known.id} does not ask {question!r}: {asked}")
            verdict = "Approve" if approved else "Refuse"
            plan = Planned(
                tool="answer_approval",
                why=why,
                about={"job": known.id, "question": question, "approved": approved, "note": note},
                summary=f"{verdict} {question!r} of job {known.id} ({known.kind}).",
                jobs=(known.id,),
            )
            if dry_run_id is None:
                return await self._confirming.dry_run(desk, plan)
            if (form := await self._confirming.confirm(ask, desk, plan, dry_run_id)) is not None:
                return form
            await desk.answer(known.id, question, approved=approved, note=note, why=why)
            return self._confirming.done(plan, f"{verdict}d {question!r} of job {known.id}.")


def _called(queue: str | None, kind: str | None) -> str:
    return " in ".join(
        [*([f"kind {kind!r}"] if kind is not None else []), *([f"queue {queue!r}"] if queue is not None else [])]
    )


def _is_meant(pause: Pause, pause_id: str | None, queue: str | None, kind: str | None) -> bool:
    if pause_id is not None:
        return pause.id == pause_id
    return queue in {None, pause.queue} and kind in {None, pause.kind}
