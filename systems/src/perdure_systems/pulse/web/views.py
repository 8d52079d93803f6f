"""Jobs as pulse shows them: its own words, ids, phases, progress and money."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from perdure import ArgumentError, Desk, JobFilter, JobState, JobView, Page
from perdure_systems.pulse.jobs import STATE_WORDS, records
from perdure_systems.pulse.log_lines import RETRIES, plain_error, public_id
from perdure_systems.pulse.records import Cost
from perdure_systems.pulse.submitting import TAG

STATES: Final = ("queued", "running", "paused", "completed", "failed", "cancelled")
_REASONS: Final = {
    "rate limited": "rate_limited",
    "budget exceeded": "budget_exceeded",
    "on hold": "paused_by_operator",
}
_CHILD: Final = "pulse.analyse"
_ROWS_REACHED_LIMIT: Final = 10_000  # the engine counts pages no further


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """A job as people see it.

    `phase` is None for jobs of one phase. `current` and `total` are its progress, `estimated` and `actual` its cost.
    `resumes_at` is when a job that waits comes back by itself.
    """

    id: str
    source: str
    handler: str
    state: str
    phase: str | None
    reason: str
    current: int | None
    total: int | None
    estimated: float
    actual: float
    retry_count: int
    max_retries: int
    error: str | None
    warnings: tuple[str, ...]
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    resumes_at: datetime | None
    parent: str | None

    @property
    def percent(self) -> int:
        """How far it is, from 0 to 100."""
        return round(100 * (self.current or 0) / self.total) if self.total else 0


def word_of(view: JobView) -> str:
    """The state in pulse's words."""
    return STATE_WORDS.get(view.state.value, view.state.value)


def states_of(word: str) -> tuple[JobState, ...]:
    """The states that one of pulse's words stands for; raises ArgumentError."""
    if word not in STATES:
        raise ArgumentError("state", f"must be one of {', '.join(STATES)}, got {word!r}")
    return tuple(state for state in JobState if STATE_WORDS.get(state.value, state.value) == word)


def reason_of(view: JobView) -> str:
    """The reason for a job's state: `rate_limited`, `budget_exceeded`, or the engine's own text."""
    text = view.reason.removeprefix("paused: ")
    return next((word for start, word in _REASONS.items() if text.startswith(start)), view.reason)


async def show_page(desk: Desk, state: str | None, page: Page) -> tuple[list[Shown], bool]:
    """The jobs that were handed in, newest first, and whether there are more."""
    number = page.number or 1
    if number * page.limit > _ROWS_REACHED_LIMIT:
        raise ArgumentError(
            "page", f"must end within the first {_ROWS_REACHED_LIMIT:,} jobs, got {number}: filter by state"
        )
    which = JobFilter(tag=TAG, states=states_of(state)) if state else JobFilter(tag=TAG)
    found = await desk.jobs(which, page)
    has_more = found.next is not None and (number + 1) * page.limit <= _ROWS_REACHED_LIMIT
    return await show_all(desk, found.jobs), has_more


async def show_all(desk: Desk, views: tuple[JobView, ...] | list[JobView]) -> list[Shown]:
    """These jobs, each with its progress and cost."""
    costs = await records.costs(sorted({view.arguments["document"] for view in views}))
    return [await show(desk, view, costs) for view in views]


async def show(desk: Desk, view: JobView, costs: dict[str, Cost]) -> Shown:
    """One job."""
    arguments = view.arguments
    of_document = costs.get(arguments["document"])
    phase: str | None = None
    current = total = None
    estimated = actual = 0.0
    if view.kind == _CHILD:
        chunk = await records.chunk(arguments["document"], arguments["number"])
        current, total = int(view.state is JobState.SUCCEEDED), 1
        if chunk is not None:
            estimated, actual = chunk.estimated, chunk.actual or 0.0
    elif view.kind == "pulse.ingest":
        phase = "ingest"
        if of_document is not None:
            phase, current, total = "aggregate", of_document.answered, of_document.pieces
            estimated, actual = of_document.estimated, of_document.actual
    elif (progress := (await desk.job(view.id, lines=0)).progress) is not None:
        current, total = round(progress.current), None if progress.total is None else round(progress.total)
    return Shown(
        id=public_id(view.id),
        source=arguments.get("source") or f"piece {arguments['number'] + 1}",
        handler=arguments["handler"],
        state=word_of(view),
        phase=phase,
        reason=reason_of(view),
        current=current,
        total=total,
        estimated=estimated,
        actual=actual,
        retry_count=max(view.failures - (view.state is JobState.DEAD), 0),
        max_retries=RETRIES,
        error=None if view.last_error is None else plain_error(view.last_error),
        warnings=view.warnings,
        created_at=view.created_at,
        started_at=view.started_at,
        completed_at=view.finished_at,
        resumes_at=view.due_at,
        parent=None if view.parent is None else public_id(view.parent),
    )
