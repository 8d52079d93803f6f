"""One job in full, on one page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from perdure.domain.flows.flow import FamilyView, OnEnd, Progress, StepKind, StepRecord, StepState
from perdure.domain.gate import Cost
from perdure.domain.gate_record import GateRecord, GateVisit
from perdure.domain.jobs.job import Attempt, JobView
from perdure.domain.jobs.log_lines import LogLine
from perdure.operate.records import JobDetail
from perdure.operate.why.parked import is_looked_at_again
from perdure.surfaces.cli.jobs.display.job_table import attempts_of, reason_of, word_of
from perdure.surfaces.cli.terminal.hostile import one_line
from perdure.surfaces.cli.terminal.output import STATE_STYLE, console, print_json
from perdure.surfaces.cli.terminal.pieces import block, document, facts, indented, section
from perdure.surfaces.cli.terminal.times import absolute, both, relative, took

_SAME_MOMENT: Final = timedelta(seconds=1)
_STEP_STYLE: Final = {StepState.BEGUN: "", StepState.DONE: "dim", StepState.GIVEN_UP: "yellow"}
_STEPS_SHOWN: Final = 50
_NAME_LIMIT_COLUMNS: Final = 30
_TRIED: Final = (StepKind.CALL, StepKind.POLL)
_LEVEL_STYLE: Final = {"warning": "yellow", "error": "red", "critical": "bold red", "debug": "dim"}


def show_job(detail: JobDetail, now: datetime, *, as_json: bool, traceback: bool) -> None:
    """Print a job with the timeline of its attempts."""
    if as_json:
        print_json(detail.to_dict())
        return
    out = console()
    out.print(_headline(detail.job))
    out.print(facts([*_fact_list(detail.job, now), *_progress(detail.progress, now), *_costs(detail.costs)]))
    job = detail.job
    documents = (("Arguments", job.args), ("Meta", job.meta), ("Settings of its own", job.settings))
    for title, text in (*documents, ("Checkpoint", job.cursor), ("Result", job.result)):
        if text is not None:
            out.print(section(title, document(text)))
    if detail.job.warnings:
        out.print(section("Warnings", block("\n".join(detail.job.warnings), "yellow")))
    if detail.steps:
        out.print(section("Steps", Group(*_steps(detail.steps, now))))
    if detail.families:
        out.print(section("Children", Group(*(_family(family) for family in detail.families))))
    if detail.attempts:
        out.print(section("Attempts that did not succeed", timeline(detail.attempts, now, traceback=traceback)))
    if detail.gates:
        out.print(section("Gates", Group(*_gates(detail.gates, now))))
    if detail.lines:
        out.print(section("Log", Group(*(_line(line) for line in detail.lines))))


def _progress(progress: Progress | None, now: datetime) -> Iterator[tuple[str, Text]]:
    if progress is not None:
        total = "" if progress.total is None else f" of {progress.total:g}"
        note = f", {one_line(progress.note)}" if progress.note else ""
        yield "progress", Text(f"{progress.current:g}{total}{note}  ({relative(progress.at, now)})")


def _costs(costs: Sequence[Cost]) -> Iterator[tuple[str, Text]]:
    for cost in costs:
        estimated = "" if cost.estimated is None else f", and an estimate of {cost.estimated:g}"
        yield "cost", Text(f"{cost.spent:g} of {one_line(cost.budget)}{estimated}")


def _gates(records: Sequence[GateRecord], now: datetime) -> Iterator[Text]:
    """The gates that each attempt has met, in words."""
    for record in records:
        for visit in record.visits:
            estimate = f" with estimate {visit.estimate:g}" if visit.estimate else ""
            passed = "not passed yet" if visit.passed_at is None else f"passed{estimate} at {absolute(visit.passed_at)}"
            times = f", the last of {visit.passes} times" if visit.passes > 1 else ""
            held = "" if visit.held_since is None else _held(visit, visit.held_since, now)
            name = f"{visit.gate} {one_line(visit.key)}"
            yield Text.assemble(
                (f"#{record.attempt}  ", "dim"), (one_line(name), "bold"), f"  {held}{passed}{times}", overflow="fold"
            )


def _held(visit: GateVisit, since: datetime, now: datetime) -> str:
    until = "" if visit.held_until is None else f" to {absolute(visit.held_until)}"
    return f"held {took(visit.held_for(now))} ({'since ' if visit.is_held else ''}{absolute(since)}{until}), "


def _steps(steps: Sequence[StepRecord], now: datetime) -> Iterator[Text]:
    """The steps; if there are very many, only the last ones, which show where the job is."""
    if len(steps) > _STEPS_SHOWN:
        yield Text(f"… {len(steps) - _STEPS_SHOWN:,} before these: --json has all", style="dim")
    shown = steps[-_STEPS_SHOWN:]
    width = min(max(len(one_line(step.key)) for step in shown), _NAME_LIMIT_COLUMNS)
    for step in shown:
        yield _step(step, now, width)


def _step(step: StepRecord, now: datetime, width: int) -> Text:
    tries = f", {step.tries} tries" if step.tries > 1 and step.kind in _TRIED else ""
    due = f", until {both(step.due_at, now)}" if step.due_at and step.state is StepState.BEGUN else ""
    note = f": {one_line(step.note)}" if step.note and step.state is not StepState.DONE else ""
    line = f"  {step.kind}, {step.state}{tries}{due}{note}"
    return Text.assemble((one_line(step.key).ljust(width), "bold"), (line, _STEP_STYLE[step.state]), overflow="fold")


def _line(line: LogLine) -> Text:
    style = _LEVEL_STYLE.get(line.level, "")
    when, level = absolute(line.at), f"{one_line(line.level):<7}"
    return Text.assemble((when, "dim"), "  ", (level, style), f"  {one_line(line.text)}", overflow="fold")


def _headline(job: JobView) -> Text:
    style = STATE_STYLE.get(job.state, "")
    state = f"{job.state.upper()}{word_of(job)}"
    return Text.assemble((one_line(job.kind), "bold"), "  ", (state, style), f"  {one_line(reason_of(job))}")


def _fact_list(job: JobView, now: datetime) -> Iterator[tuple[str, Text]]:
    yield "id", Text(job.id)
    if job.ref is not None:
        yield "ref", Text(one_line(job.ref))
    if job.parent is not None:
        yield "parent", Text(job.parent)
    yield "queue", Text(f"{one_line(job.queue)}, priority {job.priority}")
    yield "attempts", Text(_attempts(job))
    yield "created", Text(both(job.created_at, now))
    if abs(job.since - job.created_at) > _SAME_MOMENT:
        yield "due since" if job.since <= now else "due", Text(both(job.since, now))
    if job.due_at is not None:
        yield (
            "looked at again" if is_looked_at_again(job) else "comes back",
            Text(both(job.due_at, now), style="yellow"),
        )
    if job.started_at is not None:
        yield "started", Text(both(job.started_at, now))
    if job.finished_at is not None:
        yield "finished", Text(_finished(job, job.finished_at, now))
    if job.worker is not None:
        yield "worker", Text(one_line(job.worker))
    if job.cancel_requested_at is not None:
        yield "asked to stop", Text(both(job.cancel_requested_at, now), style="yellow")
    yield from _words(job)


def _words(job: JobView) -> Iterator[tuple[str, Text]]:
    """The short facts that exist."""
    for name, word in (
        ("cancelled by" if job.finished_at else "asked by", job.cancelled_by),
        ("unique key", job.unique_key),
        ("fair key", job.fair_key),
        ("tags", ", ".join(job.tags) or None),
        ("mark", job.mark),
    ):
        if word is not None:
            yield name, Text(one_line(word))


def _family(family: FamilyView) -> Text:
    enough = f", {family.quorum} are enough" if family.quorum is not None else ""
    kept = ", kept when the parent ends" if family.on_end is OnEnd.KEEP else ""
    line = f"{family.succeeded:,} of {family.total:,} succeeded, {family.failed:,} failed{enough}{kept}"
    return Text.assemble((one_line(family.key), "bold"), f"  {line}")


def _attempts(job: JobView) -> str:
    failed = job.failures + job.crashes
    crashes = f" ({job.crashes} by a crash)" if job.crashes else ""
    return f"{attempts_of(job)} made, {failed or 'none'} failed{crashes}"


def _finished(job: JobView, finished_at: datetime, now: datetime) -> str:
    text = both(finished_at, now)
    return text if job.started_at is None else f"{text}, took {took(finished_at - job.started_at)}"


def timeline(attempts: tuple[Attempt, ...], now: datetime, *, traceback: bool) -> RenderableType:
    """Attempts, one below the other."""
    pieces: list[RenderableType] = []
    for attempt in attempts:
        when = f"{absolute(attempt.started_at)}  ({relative(attempt.started_at, now)})"
        head = Text.assemble(
            (f"#{attempt.number}", "bold"), f"  {when}  {took(attempt.finished_at - attempt.started_at)}"
        )
        pieces.append(head)
        pieces.append(indented(Text(f"{one_line(attempt.reason)} on {one_line(attempt.worker)}", style="dim")))
        pieces.append(indented(block(f"{attempt.error_type}: {attempt.message}", "red", most=10)))
        if attempt.next_at is not None:
            pieces.append(indented(Text(f"next attempt {both(attempt.next_at, now)}", style="dim")))
        if traceback and attempt.traceback:
            pieces.append(indented(block(attempt.traceback)))
    if not traceback and any(attempt.traceback for attempt in attempts):
        pieces.append(Text("Tracebacks: --traceback", style="dim"))
    return Group(*pieces)
