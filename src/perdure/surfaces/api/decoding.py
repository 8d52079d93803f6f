"""Parses queries and bodies into checked values, strictly. Errors name the field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct
from starlette.requests import ClientDisconnect, Request

from perdure.errors import ArgumentError
from perdure.policy.secrets.redaction import redact_value
from perdure.storage.checking import echo
from perdure.surfaces.api.problems import HttpError
from perdure.surfaces.api.route import Route
from perdure.surfaces.api.wanted import TIME, is_time, refusal

BODY_LIMIT_BYTES: Final = 1024 * 1024
_JSON: Final = "application/json"

T = TypeVar("T", bound=Struct)


def refuse_unread(request: Request, route: Route) -> None:
    """Refuse parameters that this route would ignore: a command with `dry_run` in its query must not run."""
    if route.query is None and request.query_params:
        where = "" if route.request is None else "; give the parameters in the JSON body"
        raise ArgumentError(next(iter(request.query_params)), f"is not a parameter: this path takes none{where}")
    if route.request is not None and not route.guarded and "if-match" in request.headers:
        raise HttpError(412, "no-version", "this command compares no version: leave out If-Match")


def read_query(request: Request, wanted: type[T], given: dict[str, Any]) -> T:
    """The query as a struct; adds the raw values to `given`. A list parameter may be repeated."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(wanted)}
    query: dict[str, Any] = {}
    for name in request.query_params:
        if name not in fields:
            raise ArgumentError(name, f"is not a parameter of this list; valid parameters: {', '.join(fields)}")
        values = request.query_params.getlist(name)
        if _is_list(fields[name].type):
            query[name] = values
        elif len(values) == 1:
            query[name] = values[0]
        else:
            raise ArgumentError(name, f"is given {len(values)} times: give it once")
        if is_time(wanted, name) and ":" not in values[0]:  # msgspec reads a number as seconds since 1970
            given.update(query)
            raise ArgumentError(name, f"must be {TIME}, got {echo(values[0])}")
    given.update(query)
    refuse_nul(query)
    try:
        return msgspec.convert(query, wanted, strict=False)
    except msgspec.ValidationError as error:
        raise refusal(error, wanted, query) from None


def refuse_nul(values: Mapping[str, str | list[str]]) -> None:
    """Refuse NUL characters, which no stored text can hold; the database's error would not name the field."""
    for name, value in values.items():
        if any("\x00" in text for text in ([value] if isinstance(value, str) else value)):
            raise ArgumentError(name, f"holds characters that no stored text has: {echo(value)}")


async def read_body(request: Request, wanted: type[T], given: dict[str, Any]) -> T:
    """The body as a struct; adds the raw values to `given`. A missing body counts as an empty object."""
    data = await _bytes(request)
    if data and request.headers.get("content-type", "").partition(";")[0].strip().lower() != _JSON:
        raise HttpError(415, "media-type", f"the body must be JSON, with Content-Type: {_JSON}")
    try:
        body = msgspec.json.decode(data or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise HttpError(400, "syntax", f"the body is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise HttpError(400, "syntax", f"the body must be a JSON object, got {echo(redact_value(body))}")
    given.update(body)
    try:
        return msgspec.convert(body, wanted)
    except msgspec.ValidationError as error:
        raise refusal(error, wanted, body) from None


async def _bytes(request: Request) -> bytes:
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > BODY_LIMIT_BYTES:
        raise _too_large()
    data = bytearray()
    try:
        async for chunk in request.stream():
            data += chunk
            if len(data) > BODY_LIMIT_BYTES:
                raise _too_large()
    except ClientDisconnect:
        raise HttpError(400, "syntax", "the body ended early") from None
    return bytes(data)


def _too_large() -> HttpError:
    return HttpError(413, "too-large", f"the body has more than {BODY_LIMIT_BYTES:,} bytes: send less at once")


def _is_list(kind: Any) -> bool:
    return getattr(kind, "__origin__", None) in {tuple, list, frozenset}
