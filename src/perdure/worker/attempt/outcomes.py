"""Outcomes of attempts, the same for a task, a thread and a process."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from perdure.domain.jobs.outcome import BadArguments, Done, Failed, Failure, Outcome
from perdure.domain.jobs.transition import Transition
from perdure.errors import PayloadError
from perdure.flows.journal import Journal
from perdure.kinds.encoding import encode
from perdure.policy.failures import bad_arguments, failure_of, lineage
from perdure.policy.secrets.redaction import known_secrets, redact_failure, redact_text

NOTHING: Final = Done()
_RESULT_LIMIT_CHARACTERS: Final = 1024 * 1024


class AttemptInterrupted(BaseException):
    """Raised inside a sync handler that must stop."""


def done(result: Any) -> Done:
    """A handler's return value as an outcome. If the value cannot be stored, the job succeeds with a warning."""
    try:
        text = encode(result)
    except (TypeError, ValueError, NotImplementedError, OverflowError, RecursionError) as error:
        return Done(warnings=(f"the result was not kept: {error}",))
    if len(text) > _RESULT_LIMIT_CHARACTERS:
        return Done(
            warnings=(f"the result was not kept: {len(text)} characters, {_RESULT_LIMIT_CHARACTERS} are allowed",)
        )
    return Done(text)


def with_journal(journal: Journal, outcome: Outcome | None) -> Outcome | None:
    """The outcome of an attempt with a journal: adds its warnings, and a park that its handler has caught."""
    if not isinstance(outcome, Done):
        return outcome
    if journal.parked is not None:
        return journal.parked.parked
    warnings = journal.warnings()
    return Done(outcome.result, outcome.warnings + warnings) if warnings else outcome


def without_secrets(move: Transition, journal: Journal | None) -> Transition:
    """The transition with the job's secrets masked in its texts; its result is data, and stays as it is."""
    claim = move.claim
    known = known_secrets(claim.args, claim.meta) if journal is None else journal.secrets()
    return replace(
        move,
        failure=None if move.failure is None else redact_failure(move.failure, known),
        note=None if move.note is None else redact_text(move.note, known),
        warnings=tuple(redact_text(text, known) for text in move.warnings),
    )


def unreadable(error: Exception) -> BadArguments | Failed:
    """The stored arguments could not be read: they do not fit the handler, or the app's own types raised."""
    return bad_arguments(error) if isinstance(error, PayloadError) else broken(error)


def broken(error: BaseException) -> Failed:
    """Code around the handler failed; the job's triage does not apply."""
    return Failed(failure_of(error), kinds=lineage(type(error)))


def cancelled_from_inside(error: BaseException) -> Failed:
    """The handler was cancelled, but not by the worker."""
    return Failed(Failure(type(error).__name__, "the handler was cancelled from inside"))
