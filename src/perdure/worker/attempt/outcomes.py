"""What is the same for every attempt, wherever it runs."""

from __future__ import annotations

from typing import Any, Final

from perdure.domain.jobs.outcome import BadArguments, Done, Failed, Failure, Outcome
from perdure.errors import PayloadError
from perdure.flows.journal import Journal
from perdure.kinds.encoding import encode
from perdure.policy.failures import bad_arguments, failure_of, lineage

NOTHING: Final = Done()
_RESULT_LIMIT: Final = 1024 * 1024


class AttemptInterrupted(BaseException):
    """Raised inside a sync handler that must stop."""


def done(result: Any) -> Done:
    """A handler's return value as an outcome. One that cannot be kept is a warning: the work itself is done."""
    try:
        text = encode(result)
    except (TypeError, ValueError, NotImplementedError, OverflowError, RecursionError) as error:
        return Done(warnings=(f"the result was not kept: {error}",))
    if len(text) > _RESULT_LIMIT:
        return Done(warnings=(f"the result was not kept: {len(text)} characters, {_RESULT_LIMIT} are allowed",))
    return Done(text)


def with_journal(journal: Journal, outcome: Outcome | None) -> Outcome | None:
    """What became of an attempt that keeps a journal: its warnings, and a park that its handler has swallowed."""
    if not isinstance(outcome, Done):
        return outcome
    if journal.parked is not None:
        return journal.parked.parked
    warnings = journal.warnings()
    return Done(outcome.result, outcome.warnings + warnings) if warnings else outcome


def unreadable(error: Exception) -> BadArguments | Failed:
    """The stored arguments could not be read: they do not fit, or their types, somebody else's code, failed."""
    return bad_arguments(error) if isinstance(error, PayloadError) else broken(error)


def broken(error: BaseException) -> Failed:
    """Something went wrong around the handler, for which no triage was made."""
    return Failed(failure_of(error), kinds=lineage(type(error)))


def cancelled_from_inside(error: BaseException) -> Failed:
    """The handler was cancelled, and not by us."""
    return Failed(Failure(type(error).__name__, "the handler was cancelled from inside"))
