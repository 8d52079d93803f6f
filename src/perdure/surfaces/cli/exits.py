"""The exit codes of the command line: one per type of outcome."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from perdure.errors import ArgumentError, ConflictError, DuplicateJobError, NotFoundError


class Exit(IntEnum):
    """The exit codes; `perdure --help` and docs/reference/cli.md say the same."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    UNHEALTHY = 5


MEANING: Final = {
    Exit.OK: "done",
    Exit.FAILED: "failed",
    Exit.USAGE: "bad usage or input",
    Exit.NOT_FOUND: "not found",
    Exit.CONFLICT: "conflict or nothing changed",
    Exit.UNHEALTHY: "doctor found a problem",
}


def exit_for(error: BaseException) -> Exit:
    """The code for an error of perdure."""
    if isinstance(error, ArgumentError):
        return Exit.USAGE
    if isinstance(error, NotFoundError):
        return Exit.NOT_FOUND
    if isinstance(error, ConflictError | DuplicateJobError):
        return Exit.CONFLICT
    return Exit.FAILED
