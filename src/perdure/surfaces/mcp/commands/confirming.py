"""The steps of a command: dry run, its id, the question to the person, the change.

1. A call without `dry_run_id` changes nothing: it says what would be done and returns an id.
2. The same call with that id is checked: same agent, same action, same jobs, not too old, not used before.
3. Where the agent's client can ask its user, it must: a refusal ends the dry run.
4. The id becomes invalid, and the command runs.

From version 2026-07-28 of the protocol, the server returns the question, and the client repeats the call with the
answer. In earlier versions, the server sends the question while the call waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from anyio import move_on_after
from mcp.server.elicitation import AcceptedElicitation, render_elicitation_schema
from mcp.types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from msgspec import Struct
from pydantic import BaseModel, Field

from perdure.errors import ConflictError
from perdure.operate.commands.dry_runs import VALID_FOR, DryRun
from perdure.operate.desk import Desk
from perdure.surfaces.mcp.answers.commands import CommandAnswer, SkippedJob
from perdure.surfaces.mcp.ground import Ask, Ground
from perdure.surfaces.mcp.quoting import sentence

_ASKS_BY_RESULT: Final = "2026-07-28"
_QUESTION: Final = "confirm"
_SKIPPED_SHOWN: Final = 20


class Approve(BaseModel):
    """The form that a person fills in."""

    approve: bool = Field(description="Do it?")


class Planned(Struct, frozen=True, kw_only=True):
    """What a command is about to do, and the agent's reason.

    `about` binds a dry run to this command; `summary` is for the person.
    """

    tool: str
    why: str
    about: Mapping[str, Any]
    summary: str
    jobs: tuple[str, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    more_match: bool = False
    notes: tuple[str, ...] = ()


class Confirming:
    """Leads a command from its dry run to the confirmed call."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    async def dry_run(self, desk: Desk, plan: Planned) -> CommandAnswer:
        """The answer of a dry run: what would be done, and the id that confirms it."""
        dry_run = await (await self._ground.dry_runs(desk)).make(plan.tool, plan.about)
        return self._answer(plan, "dry_run", plan.summary, dry_run)

    async def confirm(self, ask: Ask, desk: Desk, plan: Planned, dry_run_id: str) -> InputRequiredResult | None:
        """None: it is confirmed, and the id is now invalid. Otherwise the question that the client must answer first.

        Raises ToolError for an invalid id, or if the person declines.
        """
        dry_runs = await self._ground.dry_runs(desk)
        try:
            dry_run = await dry_runs.check(dry_run_id, plan.tool, plan.about)
            answer = await _ask_person(ask, _question(plan, desk.actor))
            if isinstance(answer, InputRequiredResult):
                return answer
            await dry_runs.use(dry_run)
        except ConflictError as error:
            raise await self._ground.refuse(desk, plan.tool, f"ConflictError: {error}") from error
        if not answer:
            reason = "the person who was asked declined or did not answer: nothing was changed"
            raise await self._ground.refuse(desk, plan.tool, reason)
        return None

    def done(self, plan: Planned, summary: str) -> CommandAnswer:
        """The answer after the command."""
        return self._answer(plan, "done", summary)

    def _answer(self, plan: Planned, status: Any, summary: str, dry_run: DryRun | None = None) -> CommandAnswer:
        skipped = (SkippedJob(job=sentence(job), why=sentence(why)) for job, why in plan.skipped[:_SKIPPED_SHOWN])
        return self._ground.sized(
            CommandAnswer(
                status=status,
                summary=self._ground.quoter().text(summary),
                dry_run_id=None if dry_run is None else dry_run.id,
                expires_at=None if dry_run is None else dry_run.expires_at,
                jobs=plan.jobs,
                skipped=tuple(skipped),
                more_match=plan.more_match,
                notes=tuple(sentence(note) for note in plan.notes),
            )
        )


async def _ask_person(ask: Ask, question: str) -> bool | InputRequiredResult:
    """Whether the person agrees; True if the client cannot ask: the dry run's id is enough then."""
    can = ask.client_capabilities.elicitation if ask.client_capabilities is not None else None
    if can is None or (can.form is None and can.url is not None):
        return True
    if (ask.protocol_version or "") < _ASKS_BY_RESULT:
        with move_on_after(VALID_FOR.total_seconds()):
            given = await ask.elicit(question, Approve)
            return isinstance(given, AcceptedElicitation) and given.data.approve
        return False
    answer = (ask.input_responses or {}).get(_QUESTION)
    if answer is None:
        form = ElicitRequestFormParams(message=question, requested_schema=render_elicitation_schema(Approve))
        return InputRequiredResult(input_requests={_QUESTION: ElicitRequest(params=form)})
    return (
        isinstance(answer, ElicitResult) and answer.action == "accept" and (answer.content or {}).get("approve") is True
    )


def _question(plan: Planned, actor: str) -> str:
    """The question to the person: what would be done, to which jobs, who wants it and why."""
    return f"{sentence(plan.summary)} Asked for by {actor}, whose reason is: {sentence(plan.why)}"
