"""Errors as problem details (RFC 9457): one JSON shape for every error."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType
from starlette.responses import Response

from perdure.errors import (
    ArgumentError,
    ConflictError,
    DuplicateJobError,
    EventsGone,
    NotFoundError,
    PerdureError,
    SchemaError,
    StoreError,
    StoreRefused,
    StoreTimeout,
    StoreUnavailable,
)
from perdure.policy.secrets.redaction import is_secret_name, redact_value
from perdure.policy.secrets.secret import MASK
from perdure.surfaces.access.answers import Refused
from perdure.surfaces.server.live import TooManyStreams

MEDIA_TYPE: Final = "application/problem+json"
RETRY_AFTER_SECONDS: Final = 2
_URN: Final = "urn:perdure:problem:"
_ECHO_LIMIT_CHARACTERS: Final = 200

_log = logging.getLogger("perdure.api")


class Problem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What went wrong. `type` is for programs, `title` and `detail` for people.

    `field` and `value` name the parameter or member that is wrong. `instance` is the path of the request.
    """

    type: str
    title: str
    status: int
    detail: str
    instance: str | None = None
    field: str | None = None
    value: Any | UnsetType = UNSET
    allow: tuple[str, ...] = ()


class HttpError(PerdureError):
    """An error of HTTP itself: status, a word for programs, and a sentence for people."""

    def __init__(self, status: int, word: str, detail: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.word = word
        self.headers = dict(headers or {})


class PreconditionFailed(HttpError):  # noqa: N818 - as HTTP calls it
    """The resource has changed since the caller read it."""

    def __init__(self, what: str) -> None:
        super().__init__(
            412,
            "changed",
            f"{what} has changed since you read it: read it again, then decide whether to repeat the command",
        )


_STATUSES: Final[tuple[tuple[type[PerdureError], int, str], ...]] = (
    (ArgumentError, 422, "argument"),
    (NotFoundError, 404, "not-found"),
    (ConflictError, 409, "conflict"),
    (DuplicateJobError, 409, "duplicate"),
    (EventsGone, 410, "events-gone"),
    (TooManyStreams, 429, "too-many-streams"),
    (StoreTimeout, 504, "timeout"),
    (StoreUnavailable, 503, "database-away"),
    (StoreRefused, 503, "database-refuses"),
    (SchemaError, 503, "schema"),
    (StoreError, 503, "database"),
)


def problem_of(
    error: Exception, instance: str, given: Mapping[str, Any] | None = None
) -> tuple[Problem, dict[str, str]]:
    """The problem document of an error, and its headers; `given` are the values of the request."""
    if isinstance(error, HttpError):
        return _problem(error.status, error.word, str(error), instance), error.headers
    if isinstance(error, Refused):
        return _problem(error.status, "access", error.detail, instance), error.headers
    for kind, status, word in _STATUSES:
        if isinstance(error, kind):
            headers = {"retry-after": str(RETRY_AFTER_SECONDS)} if status in {429, 503, 504} else {}
            field = error.field if isinstance(error, ArgumentError) else None
            name = None if field is None else field.partition("[")[0].partition(".")[0]
            value = UNSET if name is None or given is None or name not in given else _echo(name, given[name])
            return _problem(status, word, str(error), instance, field=field, value=value), headers
    if isinstance(error, TimeoutError):
        detail = "the database did not answer in time: ask for less, or again later"
        return _problem(504, "timeout", detail, instance), {"retry-after": str(RETRY_AFTER_SECONDS)}
    _log.error("a request to %s failed", instance, exc_info=error)
    return _problem(500, "internal", "the desk failed on this request; its log says how", instance), {}


def answer(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    """The problem as a response."""
    return Response(
        msgspec.json.encode(problem),
        status_code=problem.status,
        headers={"cache-control": "no-store", **(headers or {})},
        media_type=MEDIA_TYPE,
    )


def _problem(
    status: int, word: str, detail: str, instance: str, *, field: str | None = None, value: Any = UNSET
) -> Problem:
    title = HTTPStatus(status).phrase
    return Problem(
        type=f"{_URN}{word}", title=title, status=status, detail=detail, instance=instance, field=field, value=value
    )


def _echo(field: str, value: Any) -> Any:
    """A value of the request, cut if it is long; possible secrets are left out."""
    if field == "address" or is_secret_name(field):  # the address of an alert channel may contain a password
        return MASK
    shown = redact_value(value)
    text = shown if isinstance(shown, str) else repr(shown)
    return shown if len(text) <= _ECHO_LIMIT_CHARACTERS else f"{text[:_ECHO_LIMIT_CHARACTERS]}…"
