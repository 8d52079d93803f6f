"""Lists of jobs, for a terminal of any width: the id is never cut, so that it can be copied."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from perdure.domain.flows.approval import approval_asked
from perdure.domain.jobs.job import JobView
from perdure.domain.jobs.states import JobState
from perdure.operate.records import JobPage
from perdure.surfaces.cli.terminal.hostile import one_line
from perdure.surfaces.cli.terminal.output import NARROWEST_COLUMNS, console, print_json, say, state_text
from perdure.surfaces.cli.terminal.pieces import cell, columns
from perdure.surfaces.cli.terminal.times import relative

WIDE_FROM_COLUMNS: Final = 110
_WAITS: Final = {JobState.WAITING, JobState.PAUSED}
_ON_AN_ATTEMPT: Final = {JobState.RUNNING, JobState.SUCCEEDED}  # the attempt neither failed nor crashed
_ANSWER: Final = "answer"
_CHILDREN: Final = "children"
_REMARK: Final = "Last error, or why it waits"
_GIVES_WAY: Final = {"Kind", "Queue", "Last error", _REMARK}


def show_page(page: JobPage, now: datetime, *, as_json: bool, dead: bool = False) -> None:
    """Print a page of jobs, and how to see the next one."""
    if as_json:
        print_json(page.to_dict())
        return
    if not page.jobs:
        nothing = "No dead letters" if dead else "No jobs"
        say(f"{nothing}." if page.searched_to is None else f"{nothing} so far.", "dim")
        _say_how_far(page, now)
        return
    out = console()
    out.width = max(out.width, NARROWEST_COLUMNS)  # let the terminal wrap longer lines; half an id is useless
    if not dead:
        out.print(_job_table(page.jobs, now, wide=out.width >= WIDE_FROM_COLUMNS))
        if any(job.warnings for job in page.jobs):
            say("(!) done with warnings: perdure jobs show ID", "dim")
    elif out.width >= WIDE_FROM_COLUMNS:
        out.print(_dead_table(page.jobs, now))
    else:
        _print_dead(out, page.jobs, now)
    if page.next and page.searched_to is None:
        say(f"More: --before {page.next}", "dim")
    _say_how_far(page, now)


def _say_how_far(page: JobPage, now: datetime) -> None:
    """If a search ended early, print how far it got: older jobs may match."""
    if page.searched_to is not None:
        say(f"Searched back to jobs made {relative(page.searched_to, now)}. Go on: --before {page.next}", "yellow")


def job_document(job: JobView) -> dict[str, Any]:
    """A job as JSON: stored JSON text is decoded."""
    return job.to_dict()


def attempts_of(job: JobView) -> str:
    """`2/5`: attempts made, of the maximum. A running or successful attempt counts like a failed one.

    A crash uses none of the allowed attempts.
    """
    made = job.failures + job.crashes + (job.state in _ON_AN_ATTEMPT)
    return f"{made}/{job.max_attempts + job.crashes}" if job.max_attempts else str(made)


def reason_of(job: JobView) -> str:
    """Why a job is in its state; for events, answers or children, which ones it waits for."""
    asked, name = _awaited(job, job.awaits or "")
    first = "waiting for an answer" if asked == _ANSWER else job.reason
    others = [" ".join(_awaited(job, thing)) for thing in job.also_awaits]
    return "; or ".join([f"{first}: {name}" if name else first, *others])


def _awaited(job: JobView, thing: str) -> tuple[str, str]:
    """What a job waits for: the type and the name."""
    sort, _, name = thing.partition(":")
    asked = approval_asked(job.id, name) if sort == "event" else None
    return (_CHILDREN if sort == "family" else "event", name) if asked is None else (_ANSWER, asked)


def word_of(job: JobView) -> str:
    """The app's word for the job's state, shown after it; empty if it is the same word."""
    return f" ({one_line(job.word)})" if job.word is not None and job.word != job.state else ""


def state_of(job: JobView) -> Text:
    """The state of a job, with the app's own word for it, marked if it is done with warnings."""
    state = state_text(job.state)
    state.append(word_of(job))
    return state.append(" (!)", "yellow") if job.warnings else state


def when_of(job: JobView, now: datetime) -> str:
    """The most relevant time in the job's state: when it comes back, began, ended, or became ready."""
    return relative(job.due_at or job.finished_at or job.started_at or job.since, now)


def _job_table(jobs: Sequence[JobView], now: datetime, *, wide: bool) -> Table:
    names = _Names(jobs)
    more_titles = ("Tries", _REMARK) if wide else ()
    table = columns(*names.titles, "State", "Kind", "Queue", "When", *more_titles, giving_way=_GIVES_WAY)
    for job in jobs:
        more = [Text(attempts_of(job)), _remark(job)] if wide else []
        kind, queue = cell(job.kind), cell(job.queue, "dim")
        table.add_row(*names.of(job), state_of(job), kind, queue, Text(when_of(job, now)), *more)
    return table


class _Names:
    """The columns that name jobs: the id, and the ref if one of them has one."""

    def __init__(self, jobs: Sequence[JobView]) -> None:
        self._has_refs = any(job.ref is not None for job in jobs)
        self.titles = ("ID", "Ref") if self._has_refs else ("ID",)

    def of(self, job: JobView) -> list[Text]:
        """The cells of one job."""
        return [Text(job.id), cell(job.ref or "")] if self._has_refs else [Text(job.id)]


def _remark(job: JobView) -> Text:
    """The last error; for a waiting job, what it waits for; for one done with warnings, the warnings."""
    if job.warnings:
        return cell("; ".join(job.warnings), "yellow")
    return cell(reason_of(job) if job.state in _WAITS else job.last_error or "", "dim")


def _dead_table(jobs: Sequence[JobView], now: datetime) -> Table:
    names = _Names(jobs)
    table = columns(*names.titles, "Kind", "Queue", "Died", "Reason", "Last error", giving_way=_GIVES_WAY)
    for job in jobs:
        kind, queue = cell(job.kind), cell(job.queue, "dim")
        reason, error = cell(job.reason, "dim"), cell(job.last_error or "", "red")
        table.add_row(*names.of(job), kind, queue, Text(when_of(job, now)), reason, error)
    return table


def _print_dead(out: Console, jobs: Sequence[JobView], now: datetime) -> None:
    """On a narrow terminal the error gets its own line, because people look for it."""
    for job in jobs:
        where = Text(f" in {one_line(job.queue)}", style="dim")
        ref = f"{one_line(job.ref)}  " if job.ref is not None else ""
        head = Text.assemble(job.id, "  ", ref, (one_line(job.kind), "bold"), where, f"  {when_of(job, now)}")
        error = Text(f"  {one_line(job.last_error or job.reason)}", style="red")
        for line in (head, error):
            line.truncate(out.width, overflow="ellipsis")
            out.print(line, no_wrap=True)
