"""Values from forms: JSON, priorities, and the form again with its error."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from perdure.errors import ArgumentError, ConflictError, NotFoundError
from perdure.kinds.options import checked_priority
from perdure.policy.secrets.secret import MASK
from perdure.surfaces.desk.visit import Visit


async def show_form(
    visit: Visit,
    template: str,
    *,
    title: str,
    usual: Mapping[str, str],
    error: Exception | None = None,
    wrong: str = "",
    **values: Any,
) -> Response:
    """A form with the submitted values, else those of the URL, else defaults; with an error and its field, if any."""
    sent = visit.form
    fields = {name: visit.field(name) if sent else visit.query(name, value) for name, value in usual.items()}
    status = 422 if isinstance(error, ArgumentError) else 404 if isinstance(error, NotFoundError) else 409
    return await visit.page(
        template,
        title=title,
        status=200 if error is None else status,
        fields=fields,
        problem="" if error is None else str(error),
        wrong=wrong or (error.field if isinstance(error, ArgumentError) else ""),
        **values,
    )


REFUSALS = (ArgumentError, ConflictError, NotFoundError)
"""Errors that a form shows beside its fields. Other errors become pages."""


def read_json(field: str, text: str) -> Any:
    """The value of a JSON text."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ArgumentError(field, f"is not JSON: {error}") from None


def read_arguments(text: str) -> dict[str, Any]:
    """Arguments by name. A masked secret is refused: otherwise the mask would be stored."""
    found = read_json("args", text)
    if not isinstance(found, dict):
        raise ArgumentError("args", f'must be a JSON object, such as {{"day": "monday"}}, got {text!r:.60}')
    if MASK in text:
        raise ArgumentError("args", f"contain a masked secret ({MASK}): enter its value, which is not shown here")
    return found


def read_priority(text: str) -> int:
    """A priority, 0 to 9."""
    if not text.isdecimal() or len(text) > 1:
        raise ArgumentError("priority", f"must be a number from 0 to 9, got {text!r:.20}")
    return checked_priority(int(text))


def command_line(words: Iterable[str], options: Mapping[str, str | Iterable[str]]) -> str:
    """The same command for a terminal; options without a value are left out, list options are repeated."""
    values = {name: [value] if isinstance(value, str) else value for name, value in options.items()}
    given = [word for name, each in values.items() for value in each if value for word in (f"--{name}", value)]
    return shlex.join(["perdure", *words, *given])


def listed_in(text: str, between: str = ",") -> list[str]:
    """The values of a field that holds several."""
    return [one.strip() for one in text.split(between) if one.strip()]
