"""What an exception means: one classifier per kind of job turns it into an outcome (F3).

A handler raises a verdict; a triage returns a verdict for exceptions that do not know perdure. For all other
exceptions, the job's `Retry` decides.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from perdure.domain.jobs import outcome, verdicts
from perdure.domain.jobs.outcome import Outcome
from perdure.domain.jobs.verdicts import Verdict
from perdure.errors import BudgetExceeded, EventTimeout, StepError
from perdure.policy.failures import MESSAGE_LIMIT_CHARACTERS, failure_of, lineage, noted, storable

Triage = Callable[[BaseException], Verdict | None]
"""Judge an exception; None: no opinion, the job's `Retry` decides."""

LOOK_AGAIN: Final = timedelta(seconds=30)
"""When to poll again for a pending result if no time is given."""


def classify(  # noqa: PLR0911 - one answer for each word of F3
    error: BaseException, triage: Triage | None, now: datetime, *, timed_out: bool = False
) -> Outcome:
    """Turn what a handler raised into an outcome.

    Never raises: if a triage itself fails, that is noted beside the error that it should have judged. A group with a
    single exception, as task groups make them, is judged as that exception. `now` turns instants into waits.
    """
    sole = _sole(error)
    failure = failure_of(sole, error)
    try:
        verdict = judged(sole, triage)
    except Exception as broken:  # noqa: BLE001 - the error is recorded even if the user's triage fails
        return outcome.Failed(
            noted(failure, "its triage failed", broken), timed_out=timed_out, kinds=lineage(type(sole))
        )
    match verdict:
        case verdicts.Finish():
            return outcome.Done(
                None, tuple(storable(warning, MESSAGE_LIMIT_CHARACTERS) for warning in verdict.warnings)
            )
        case verdicts.Permanent():
            return outcome.Permanent(failure)
        case verdicts.RetryAfter():
            wait = verdict.after(now)
            # An explicit time is a decision; without one the job's Retry uses the type of the error.
            return outcome.Failed(failure, wait, timed_out, lineage(type(sole)) if wait is None else ())
        case verdicts.Pending():
            wait = verdict.after(now)
            return outcome.StillPending(LOOK_AGAIN if wait is None else wait)
        case verdicts.Snooze():
            return outcome.Snoozed(verdict.after(now) or timedelta(0))
        case verdicts.Release():
            return outcome.Released(verdict.after(now))
        case verdicts.Pause():
            return outcome.Paused(storable(verdict.why, MESSAGE_LIMIT_CHARACTERS), verdict.wait)
        case verdicts.CancelJob():
            return outcome.Cancelled(storable(str(verdict), MESSAGE_LIMIT_CHARACTERS))
        case _:
            return outcome.Failed(failure, None, timed_out, lineage(type(sole)))


def judged(error: BaseException, triage: Triage | None) -> Verdict | None:
    """The verdict that an exception is, or that a triage returns for it; None: no opinion.

    Some of perdure's own errors are permanent, because a retry cannot help. A triage may raise anything.
    """
    sole = _sole(error)
    if isinstance(sole, Verdict):
        return sole
    if isinstance(sole, StepError):
        return verdicts.Permanent(str(sole))
    verdict: object = None if triage is None else triage(sole)
    if verdict is None:
        return verdicts.Permanent(str(sole)) if isinstance(sole, EventTimeout | BudgetExceeded) else None
    if isinstance(verdict, Verdict):
        return verdict
    raise TypeError(f"a triage returns a verdict or None, not {verdict!r}")


def _sole(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
