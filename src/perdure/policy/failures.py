"""Errors as stored: named, cut to a limited size, and free of characters that a database cannot store."""

from __future__ import annotations

from traceback import TracebackException
from typing import Final

from perdure.domain.jobs.outcome import BadArguments, Failure
from perdure.errors import PayloadError
from perdure.policy.secrets.redaction import redact_text

MESSAGE_LIMIT_CHARACTERS: Final = 4 * 1024
TRACEBACK_LIMIT_CHARACTERS: Final = 16 * 1024


def type_name(error: type[BaseException]) -> str:
    """The public name of an error's type: ``TimeoutError``, ``httpx.ReadTimeout``."""
    module = error.__module__
    if module == "builtins":
        return error.__qualname__
    return f"{'perdure' if module.startswith('perdure.') else module}.{error.__qualname__}"


def lineage(error: type[BaseException]) -> tuple[str, ...]:
    """The names of an error's type and its base classes, the most specific first."""
    return tuple(type_name(base) for base in error.__mro__ if issubclass(base, BaseException))


def failure_of(error: BaseException, whole: BaseException | None = None) -> Failure:
    """The stored form of an error. `whole` gives the traceback if the error was found inside another one."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - an error that cannot even speak must still be recorded
        message = "<the error could not be turned into text>"
    return Failure(
        type_name(type(error)),
        redact_text(storable(message, MESSAGE_LIMIT_CHARACTERS)),
        redact_text(storable(_traceback(error if whole is None else whole), TRACEBACK_LIMIT_CHARACTERS)),
    )


def noted(failure: Failure, what: str, broken: Exception) -> Failure:
    """The same failure, with a note about another problem while it was handled."""
    beside = failure_of(broken)
    message = f"{failure.message} ({what}: {beside.error_type}: {beside.message})"
    return Failure(failure.error_type, storable(message, MESSAGE_LIMIT_CHARACTERS), failure.traceback)


def storable(text: str, limit: int) -> str:
    """Text without NULs and lone surrogates, which no UTF-8 column accepts, its middle cut out beyond `limit`."""
    if len(text) > limit:
        head = limit // 2
        gap = f"\n… {len(text) - limit} characters cut …\n"
        text = text[:head] + gap + text[len(text) - (limit - head - len(gap)) :]
    return text.replace("\x00", "").encode("utf-8", "backslashreplace").decode("utf-8")


def _traceback(error: BaseException) -> str:
    try:
        return "".join(TracebackException.from_exception(error).format())
    except Exception as broken:  # noqa: BLE001 - hooks of a foreign error must not cost us its record
        return f"<the traceback could not be written: {type_name(type(broken))}>"


def bad_arguments(error: PayloadError) -> BadArguments:
    """The stored arguments do not fit the handler."""
    return BadArguments(Failure(type(error).__name__, str(error)))
