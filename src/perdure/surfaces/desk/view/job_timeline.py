"""The timeline of a job: waits, attempts and steps to scale, and expected attempts.

Unsuccessful attempts are recorded with their times; between them was backoff, or no worker was free. An attempt that
parked its job (for a sleep, an event, a poll or children) is no failure and is not recorded: its end is derived from
the step that it waits for, and its start from the steps before that.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from perdure.domain.flows.flow import StepKind, StepRecord, StepState
from perdure.domain.jobs.job import Attempt, JobView
from perdure.domain.jobs.states import FINAL, JobState, Reason
from perdure.operate.records import JobDetail
from perdure.policy.retries.preview import PlannedAt
from perdure.surfaces.desk.charts.timeline import Bar, Mark, Timeline
from perdure.surfaces.desk.view.numbers import short_span
from perdure.surfaces.desk.view.states import colour

WAITS: Final = "waits"
ATTEMPTS: Final = "attempts"
STEPS: Final = "steps"
_GUESSED_LENGTH: Final = timedelta(seconds=30)  # of an expected attempt, if none has run yet
_NOTICEABLE: Final = timedelta(milliseconds=1)
_CRASHES: Final = frozenset({Reason.CRASHED, Reason.CRASH_LIMIT})


def job_timeline(detail: JobDetail, ahead: Sequence[PlannedAt], now: datetime) -> Timeline:
    """The timeline of the current life of a job, from when it became due."""
    job = detail.job
    attempts = [attempt for attempt in detail.attempts if attempt.finished_at >= job.since]
    failed = [Run(attempt.started_at, attempt.finished_at) for attempt in attempts]
    parked = _parked_runs(job, detail.steps, failed)
    bars = [_attempt_bar(attempt) for attempt in attempts]
    bars += [_parked_bar(run) for run in parked]
    bars += _last_run(job, attempts)
    bars += _waits(job, sorted([*failed, *parked], key=lambda run: run.start), now)
    bars += [_step_bar(step, now) for step in detail.steps]
    bars += _ahead(ahead, failed)
    marks = [
        Mark(lane=ATTEMPTS, at=attempt.finished_at, said="the process died")
        for attempt in attempts
        if attempt.reason in _CRASHES
    ]
    lanes = (WAITS, ATTEMPTS, STEPS) if detail.steps else (WAITS, ATTEMPTS)
    return Timeline(lanes=lanes, bars=tuple(bars), marks=tuple(marks), now=None if job.state in FINAL else now)


class Run(Struct, frozen=True):
    """A finished attempt, and what the job waited for after it; `tone` is the colour of that wait."""

    start: datetime
    end: datetime
    then: str = "backoff"
    tone: str = "retrying"


def _parked_runs(job: JobView, steps: Sequence[StepRecord], failed: Sequence[Run]) -> list[Run]:
    """The attempts of this life that ended in a wait. If the job does not wait now, its open waits are over."""
    parks = sorted((step for step in steps if step.kind is not StepKind.CALL), key=lambda step: step.begun_at)
    still = [park for park in parks if park.state is StepState.BEGUN][-1:] if job.state is JobState.WAITING else []
    runs: list[Run] = []
    free = job.since
    for park in [*(park for park in parks if park.state is not StepState.BEGUN), *still]:
        end = park.changed_at or park.begun_at
        if park.begun_at < free or (park not in still and end - park.begun_at < _NOTICEABLE):
            continue
        before = [run.end for run in failed if run.end <= park.begun_at]
        calls = [one.begun_at for one in steps if one.kind is StepKind.CALL and free <= one.begun_at < park.begun_at]
        start = max([min(calls, default=park.begun_at), *before])
        runs.append(Run(start, park.begun_at, f"{park.kind}: {park.key}", "waiting"))
        free = end
    return runs


def _parked_bar(run: Run) -> Bar:
    said = f"ran until it waited, {run.then}"
    return Bar(lane=ATTEMPTS, start=run.start, end=run.end, colour="running", said=said, soft=True)


def _attempt_bar(attempt: Attempt) -> Bar:
    said = f"attempt {attempt.number}, {attempt.reason}: {attempt.error_type}"
    return Bar(
        lane=ATTEMPTS,
        start=attempt.started_at,
        end=attempt.finished_at,
        colour="dead",
        label=str(attempt.number),
        said=said,
    )


def _last_run(job: JobView, attempts: Sequence[Attempt]) -> list[Bar]:
    """The running attempt, or the one that finished the job without a failure."""
    number = str(len(attempts) + 1)
    if job.started_at is None:
        return []
    if job.state is JobState.RUNNING:
        bar = Bar(lane=ATTEMPTS, start=job.started_at, colour="running", label=number, said="runs now")
        return [bar]
    if job.state is JobState.SUCCEEDED and job.finished_at is not None:
        said = f"attempt {number}, succeeded"
        return [
            Bar(lane=ATTEMPTS, start=job.started_at, end=job.finished_at, colour="ok", label=number, said=said),
        ]
    return []


def _waits(job: JobView, runs: Sequence[Run], now: datetime) -> list[Bar]:
    bars = []
    free_since, said, tone = job.since, "waited for a worker", "ready"
    for run in runs:
        bars += _wait(free_since, run.start, said, tone)
        free_since, said, tone = run.end, run.then, run.tone
    if job.state is JobState.RUNNING or (job.state is JobState.SUCCEEDED and job.started_at is not None):
        bars += _wait(free_since, job.started_at or now, said, tone)
    elif job.state not in FINAL:
        begun = max(free_since, job.created_at)
        label = {JobState.READY: "ready", JobState.RETRYING: "backoff"}.get(job.state, job.reason)
        bars.append(Bar(lane=WAITS, start=begun, colour=colour(job.state), label=label, said=label, soft=True))
    return bars


def _wait(start: datetime, end: datetime, said: str, tone: str) -> list[Bar]:
    if end - start < _NOTICEABLE:
        return []
    label = short_span(end - start) if said == "backoff" else ""
    return [Bar(lane=WAITS, start=start, end=end, colour=tone, label=label, said=said, soft=True)]


def _step_bar(step: StepRecord, now: datetime) -> Bar:
    is_open = step.state is StepState.BEGUN
    end = now if is_open else (step.changed_at or step.begun_at)
    tone = "retrying" if step.state is StepState.GIVEN_UP else "ok"
    if is_open:
        tone = "waiting" if step.kind is not StepKind.CALL or step.tries == 0 else "dead"
    tries = f", {step.tries} tries" if step.tries > 1 else ""
    return Bar(
        lane=STEPS,
        start=step.begun_at,
        end=max(end, step.begun_at),
        colour=tone,
        label=step.key,
        said=f"{step.key} ({step.kind}, {step.state}{tries})",
        outlined=is_open,
        soft=step.state is not StepState.GIVEN_UP and not is_open,
    )


def _ahead(planned: Sequence[PlannedAt], runs: Sequence[Run]) -> list[Bar]:
    lengths = sorted(run.end - run.start for run in runs)
    length = lengths[len(lengths) // 2] if lengths else _GUESSED_LENGTH
    bars = []
    for plan in planned:
        last = ", the last" if plan.then is not None else ""
        spread = plan.latest - plan.earliest
        between = f", up to {short_span(spread)} later" if spread else ""
        bars.append(
            Bar(
                lane=ATTEMPTS,
                start=plan.earliest,
                end=plan.earliest + max(length, _NOTICEABLE),
                label=str(plan.attempt),
                said=f"attempt {plan.attempt}{last}, if those before it fail{between}",
                ahead=True,
            )
        )
    return bars
