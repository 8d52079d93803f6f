"""Errors as problem details."""

from __future__ import annotations

import json
import logging

import pytest

from perdure import errors
from perdure.surfaces.access.answers import Refused
from perdure.surfaces.api.problems import HttpError, PreconditionFailed, answer, problem_of
from perdure.surfaces.server.live import TooManyStreams


@pytest.mark.parametrize(
    ("error", "status", "word", "again"),
    [
        (errors.ArgumentError("limit", "must be a number"), 422, "argument", False),
        (errors.NotFoundError("no such job"), 404, "not-found", False),
        (errors.ConflictError("it is running"), 409, "conflict", False),
        (errors.StoreTimeout("too slow"), 504, "timeout", True),
        (errors.StoreUnavailable("away"), 503, "database-away", True),
        (errors.StoreRefused("read-only"), 503, "database-refuses", True),
        (errors.StoreError("strange"), 503, "database", True),
        (errors.SchemaError("too old"), 503, "schema", True),
        (TooManyStreams("too many"), 429, "too-many-streams", True),
        (TimeoutError(), 504, "timeout", True),
        (Refused(403, "Forbidden", "no scope"), 403, "access", False),
        (HttpError(415, "media-type", "JSON only"), 415, "media-type", False),
        (PreconditionFailed("job 1"), 412, "changed", False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_every_error_has_its_status_and_its_word_and_says_when_to_come_back(
    error: Exception, status: int, word: str, again: bool
) -> None:
    problem, headers = problem_of(error, "/api/v1/jobs")
    assert (problem.status, problem.type, problem.instance) == (status, f"urn:perdure:problem:{word}", "/api/v1/jobs")
    assert headers == ({"retry-after": "2"} if again else {})


def test_a_refused_value_is_repeated_by_name_and_cut() -> None:
    error = errors.ArgumentError("tags[3].name", "is wrong")
    problem, _ = problem_of(error, "/", {"tags": ["x" * 300]})
    assert problem.field == "tags[3].name"
    assert str(problem.value).endswith("…")
    assert len(str(problem.value)) == 201
    absent, _ = problem_of(error, "/", {"kind": "mail"})
    assert "value" not in json.loads(bytes(answer(absent).body))


@pytest.mark.parametrize("field", ["password", "address", "api_key"])
def test_a_value_that_may_be_a_secret_is_not_repeated(field: str) -> None:
    problem, _ = problem_of(errors.ArgumentError(field, "is wrong"), "/", {field: "hunter2"})
    assert "hunter2" not in bytes(answer(problem).body).decode()


def test_a_fault_of_the_desk_is_in_its_log_and_not_in_the_answer(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "perdure.api"):
        problem, _ = problem_of(KeyError("hunter2"), "/api/v1/jobs")
    assert (problem.status, "hunter2" in problem.detail) == (500, False)
    assert "hunter2" in caplog.text
