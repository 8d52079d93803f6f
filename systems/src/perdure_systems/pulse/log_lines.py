"""What pulse writes to its log, word by word."""

from __future__ import annotations

import re
from typing import Final

import structlog

from perdure import App, Event, JobDied, JobRetrying
from perdure.events import (
    FamilyRecovered,
    FamilyRefused,
    OrphansReturning,
    OrphansWaiting,
    WorkerClosed,
    WorkerClosing,
    WorkerOpened,
)

RETRIES: Final = 2
PARENT_DELETED: Final = "parent job deleted during execution"
_TYPE: Final = re.compile(r"^[A-Za-z_]\w*(?:\.\w+)+: ")
_EXHAUSTED: Final = "attempts exhausted"
_PREFIX: Final = "JB_"
_ID_DIGITS: Final = 32
_DIGITS: Final = frozenset("0123456789abcdef")
_LEVELS: Final = {"info": 20, "warning": 30, "error": 40}

log = structlog.get_logger("perdure_systems.pulse")


def public_id(job_id: str) -> str:
    """A job's id as people see it: JB_ and the digits of its id."""
    return _PREFIX + job_id.replace("-", "")


def job_id_of(shown: str) -> str:
    """The id behind one that people see; what does not look like one is given back as it is."""
    digits = shown.removeprefix(_PREFIX)
    if shown == digits or len(digits) != _ID_DIGITS or not _DIGITS.issuperset(digits):
        return shown
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def plain_error(error: str) -> str:
    """An error without the module and the name of its type, which say nothing to people."""
    return _TYPE.sub("", error)


def line_of(event: Event) -> tuple[str, str] | None:
    """The level and the words of an event; None: it has no line."""
    match event:
        case JobRetrying(job_id=job_id, failures=failures, error=error):
            return "warning", f"꩜ Retry {failures}/{RETRIES}: {plain_error(error)} | job:{public_id(job_id)}"
        case JobDied(job_id=job_id, reason=reason, error=error):
            fate = f"Max retries exceeded ({RETRIES})" if reason == _EXHAUSTED else "Failed"
            return "error", f"꩜ {fate}: {plain_error(error)} | job:{public_id(job_id)}"
        case FamilyRecovered(job_id=job_id, decision=decision, because=because, children=children):
            found = f", {children} found" if children else ""
            return "info", f"✿ Recovered parent {decision}: {because}{found} | job:{public_id(job_id)}"
        case FamilyRefused(job_id=job_id, because=because):
            return "warning", _refused(job_id, because)
        case _:
            line = _phase_line(event)
            return None if line is None else ("info", line)


def _phase_line(event: Event) -> str | None:
    match event:
        case WorkerOpened(worker=worker):
            return f"✿ Opening: worker {worker} takes jobs"
        case OrphansReturning(jobs=jobs, with_checkpoint=first, over=over):
            return f"✿ Opening: {jobs} orphaned jobs return over {over:.0f} s, {first} with a checkpoint come first"
        case OrphansWaiting(next_round_in=wait):
            return f"✿ Opening: more orphaned jobs wait for the next round in {wait:.0f} s"
        case WorkerClosing(worker=worker, running=running):
            return f"❀ Closing: worker {worker} lets {running} running jobs finish or checkpoint"
        case WorkerClosed(worker=worker, finished=finished, released=released):
            return f"❀ Closed: worker {worker} finished {finished} jobs and handed {released} back"
        case _:
            return None


def tell(event: Event) -> None:
    """Write the line of an event, if it has one."""
    if (line := line_of(event)) is not None:
        level, words = line
        log.log(_LEVELS[level], words)


def tell_refused(job_id: str) -> None:
    """Write that a parent was deleted before it could enqueue children."""
    log.warning(_refused(job_id, PARENT_DELETED))


def _refused(job_id: str, because: str) -> str:
    return f"꩜ No children enqueued: {because} | job:{public_id(job_id)}"


def subscribe(app: App) -> None:
    """Let the app's events be told."""
    app.subscribe(tell)
