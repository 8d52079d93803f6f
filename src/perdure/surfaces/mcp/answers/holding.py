"""Schedules, gates, retries and questions as agents see them."""

from __future__ import annotations

from datetime import datetime

from perdure.domain.gate import BreakerView, Pause
from perdure.operate.commands.calendar import ScheduleDetail
from perdure.operate.commands.holds import Spent
from perdure.operate.records import Asking
from perdure.operate.views.retry_preview import RetryPreview
from perdure.policy.retries.preview import PlannedAt
from perdure.surfaces.mcp.answers.base import Answer, Part
from perdure.surfaces.mcp.quoting import Quoted, Quoter, name, sentence


class FireLine(Part):
    """A nominal time of a schedule and its outcome."""

    nominal_at: datetime
    outcome: str
    cause: str
    job: str | None


class ScheduleLine(Part):
    """A schedule: when it fires next, and the outcomes of its last times."""

    name: str
    kind: str
    queue: str
    expression: str
    tz: str
    paused: bool
    paused_until: datetime | None
    upcoming: list[datetime]
    last: list[FireLine]
    problem: str | None
    args: Quoted


class SchedulesNow(Answer):
    """Schedules by name."""

    schedules: list[ScheduleLine]
    more: int


class PauseLine(Part):
    """A pause. Give its `id` to `resume`."""

    id: str
    queue: str | None
    kind: str | None
    args: Quoted | None
    until: datetime | None
    by: str
    at: datetime
    why: Quoted | None


class BreakerLine(Part):
    """A breaker. While it is open, the jobs behind it wait."""

    name: str
    state: str
    recent_failures: int
    changed_at: datetime | None
    until: datetime | None
    note: Quoted | None


class SpentLine(Part):
    """The spending of a budget."""

    budget: str
    last_day: float
    last_week: float
    last_month: float


class GatesNow(Answer):
    """What holds jobs back: pauses and breakers; and the spending of budgets."""

    pauses: list[PauseLine]
    breakers: list[BreakerLine]
    budgets: list[SpentLine]
    more: int


class PlannedLine(Part):
    """A future attempt: `then` says why the job is dead if it fails too."""

    attempt: int
    earliest: datetime
    latest: datetime
    then: str | None


class RetriesAhead(Answer):
    """The future attempts if every one fails; `by_error`: for errors with their own retry rule."""

    of: str
    attempts: list[PlannedLine]
    more: bool
    by_error: dict[str, list[PlannedLine]]


class QuestionLine(Part):
    """A job that waits for a person's answer."""

    job: str
    kind: str
    question: Quoted
    until: datetime | None
    asked_by_args: Quoted


class QuestionsNow(Answer):
    """Questions that wait for an answer, those of the newest jobs first."""

    questions: list[QuestionLine]


def schedule_line(quoter: Quoter, detail: ScheduleDetail) -> ScheduleLine:
    """One schedule."""
    view, schedule = detail.view, detail.view.schedule
    return ScheduleLine(
        name=name(view.name),
        kind=name(schedule.kind),
        queue=name(schedule.queue),
        expression=name(schedule.expression),
        tz=name(schedule.tz),
        paused=view.paused_at is not None,
        paused_until=view.paused_until,
        upcoming=list(detail.upcoming),
        last=[
            FireLine(nominal_at=fire.nominal_at, outcome=fire.fate, cause=fire.cause, job=fire.job_id)
            for fire in detail.fires
        ],
        problem=None if detail.unreadable is None else sentence(detail.unreadable),
        args=quoter.text(schedule.args, 500),
    )


def pause_line(quoter: Quoter, pause: Pause) -> PauseLine:
    """One pause."""
    return PauseLine(
        id=pause.id,
        queue=None if pause.queue is None else name(pause.queue),
        kind=None if pause.kind is None else name(pause.kind),
        args=quoter.maybe(pause.args, 300),
        until=pause.until,
        by=name(pause.actor),
        at=pause.at,
        why=quoter.maybe(pause.why, 300),
    )


def breaker_line(quoter: Quoter, breaker: BreakerView) -> BreakerLine:
    """One breaker."""
    return BreakerLine(
        name=name(breaker.name),
        state=breaker.state,
        recent_failures=len(breaker.failures),
        changed_at=breaker.changed_at,
        until=breaker.until,
        note=quoter.maybe(breaker.note, 300),
    )


def spent_line(spent: Spent) -> SpentLine:
    """One budget."""
    return SpentLine(budget=name(spent.name), last_day=spent.daily, last_week=spent.weekly, last_month=spent.monthly)


def retries_ahead(of: str, found: RetryPreview) -> RetriesAhead:
    """The future attempts of a job or kind."""
    return RetriesAhead(
        of=name(of),
        attempts=[_planned(step) for step in found.plan],
        more=found.more,
        by_error={name(error): [_planned(step) for step in rule.plan] for error, rule in found.by_error.items()},
    )


def question_line(quoter: Quoter, asking: Asking) -> QuestionLine:
    """One question."""
    return QuestionLine(
        job=asking.job.id,
        kind=name(asking.job.kind),
        question=quoter.text(asking.name, 300),
        until=asking.until,
        asked_by_args=quoter.text(asking.job.args, 500),
    )


def _planned(step: PlannedAt) -> PlannedLine:
    return PlannedLine(attempt=step.attempt, earliest=step.earliest, latest=step.latest, then=step.then)
