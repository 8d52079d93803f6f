"""What errors say, and what they carry."""

from __future__ import annotations

import pytest

from perdure.errors import (
    ArgumentError,
    ChildrenFailed,
    ChildrenTimeout,
    FailedChild,
    JobNotSuccessful,
    PerdureError,
    SettingsError,
)

ONE = FailedChild(1, "j1", "dead", "builtins.ValueError: no such host")


def test_an_error_of_a_field_names_it_and_is_a_value_error_too() -> None:
    error = SettingsError("lease", "must exceed 10s, got 5s")
    assert (str(error), error.field) == ("lease must exceed 10s, got 5s", "lease")
    for kind in (ArgumentError, ValueError, PerdureError):
        assert isinstance(error, kind)
    assert str(JobNotSuccessful("j1", "dead", "ValueError")) == "job j1 is dead: ValueError"


def test_failed_children_are_named_up_to_a_few() -> None:
    failed = tuple(FailedChild(number, f"j{number}", "dead", None) for number in range(9))
    said = str(ChildrenFailed("pages", failed, (None,) * 20))
    assert said.startswith("9 of 20 children of pages failed: job j0 is dead; job j1 is dead")
    assert said.endswith(" more")
    assert said.count("is dead") + int(said.rpartition("and ")[2].split()[0]) == 9


def test_of_children_of_children_the_innermost_error_is_reported() -> None:
    inner = ChildrenFailed("pages", (ONE,), (None, None))
    middle = ChildrenFailed("books", (FailedChild(0, "j0", "dead", f"perdure.ChildrenFailed: {inner}"),), (None,))
    outer = ChildrenFailed("shops", (FailedChild(0, "j9", "dead", f"perdure.ChildrenFailed: {middle}"),), (None,))
    for error in (inner, middle, outer):
        assert "builtins.ValueError: no such host" in str(error)
    assert str(outer).count("children of") == 1


@pytest.mark.parametrize(("failed", "said"), [((), ""), ((ONE,), ", 1 failed: job j1 is dead")])
def test_children_that_are_late_are_counted(failed: tuple[FailedChild, ...], said: str) -> None:
    error = ChildrenTimeout("pages", failed, (None,) * 3, (0, 2), 30.0)
    assert str(error).startswith(f"2 of 3 children of pages are not finished after 30 s{said}")
    assert error.unfinished == (0, 2)
