"""The exit codes of the command line."""

from __future__ import annotations

import pytest

from perdure import errors
from perdure.surfaces.cli.exits import MEANING, Exit, exit_for


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ArgumentError("--limit", "is wrong"), Exit.USAGE),
        (errors.SettingsError("lease", "is wrong"), Exit.USAGE),
        (errors.PayloadError("meta", "is too long"), Exit.USAGE),
        (errors.NotFoundError("no such job"), Exit.NOT_FOUND),
        (errors.ConflictError("it is running"), Exit.CONFLICT),
        (errors.StoreUnavailable("away"), Exit.FAILED),
        (KeyError("bug"), Exit.FAILED),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_a_script_can_distinguish_types_of_errors_by_the_exit_code(error: Exception, code: Exit) -> None:
    assert exit_for(error) is code


def test_every_exit_code_has_a_meaning() -> None:
    assert set(MEANING) == set(Exit)
