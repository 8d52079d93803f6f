"""The OpenAPI 3.1 document, made from the table of routes and the types of their handlers."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import Enum
from http import HTTPStatus
from typing import Any, Final, get_args

import msgspec
from msgspec import Struct
from starlette.responses import StreamingResponse

from perdure.domain.alerts.alert import Cause as AlertCause
from perdure.domain.jobs.job import Attempt as JobAttempt
from perdure.domain.schedule import Cause as ScheduleCause
from perdure.lifecycle.process.stacks import Attempt as RunningAttempt
from perdure.surfaces.api.encoding import DOCUMENTS
from perdure.surfaces.api.problems import MEDIA_TYPE, Problem
from perdure.surfaces.api.route import Route
from perdure.surfaces.api.router import BASE
from perdure.version import __version__

_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"
_REF: Final = "#/components/schemas/{name}"
_NAMESAKES: Final = {
    f"{kind.__module__}.{kind.__qualname__}": name
    for name, kind in {
        "JobAttempt": JobAttempt,
        "RunningAttempt": RunningAttempt,
        "ScheduleCause": ScheduleCause,
        "AlertCause": AlertCause,
    }.items()
}
"""Names for types that share a class name: without them, the document would contain the paths of their modules."""
_ABOUT: Final = (
    "Every view and command of the desk. Errors are problem details (RFC 9457). Callers on the machine of the desk "
    "need no token; all others send one as `Authorization: Bearer pdr_…`. Each operation names the scope that it "
    "needs: read, operate or admin."
)
_PATH: Final = {
    "id": "The id, or for jobs the ref, or for tokens the name.",
    "name": "The name.",
    "fingerprint": "The fingerprint of the group.",
    "command": "requeue, cancel, run_now, reschedule, mark, purge or delete.",
}
Shapes = Mapping[Any, dict[str, Any]]
"""The schema of each request and response type, mostly a reference."""

_CONDITION: Final = {
    "name": "If-Match",
    "in": "header",
    "required": False,
    "description": "The ETag of the version that the command is meant for.",
    "schema": {"type": "string"},
}


def openapi(routes: Iterable[Route], server: str = BASE) -> dict[str, Any]:
    """The document for these routes, served under this path or address."""
    table = tuple(routes)
    types = list(dict.fromkeys([Problem, *(kind for route in table for kind in _types(route))]))
    references, schemas = msgspec.json.schema_components(types, ref_template=_REF)
    shapes = dict(zip(types, references, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in table:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, shapes)
    document = {
        "openapi": "3.1.0",
        "info": {"title": "perdure", "version": __version__, "description": _ABOUT, "license": {"name": "MIT"}},
        "servers": [{"url": server}],
        "security": [{"token": []}, {}],
        "tags": [{"name": tag} for tag in dict.fromkeys(route.tag for route in table)],
        "paths": paths,
        "components": {
            "schemas": _finished(schemas, types),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "bearerFormat": "pdr_…"}},
            "responses": {"Problem": _answer("What went wrong.", shapes[Problem], MEDIA_TYPE)},
        },
    }
    return _renamed(document)


def _renamed(document: dict[str, Any]) -> dict[str, Any]:
    """The document with the names of `_NAMESAKES`, in its schemas and in references to them."""
    text = msgspec.json.encode(document).decode()
    for module, name in _NAMESAKES.items():
        text = text.replace(f'"{module}":', f'"{name}":').replace(f'/{module}"', f'/{name}"')
    renamed: dict[str, Any] = msgspec.json.decode(text)
    return renamed


def _types(route: Route) -> Iterable[Any]:
    if route.request is not None:
        yield route.request
    if _is_json(route):
        yield route.response


def _is_json(route: Route) -> bool:
    return route.response is not None and route.response is not StreamingResponse


def _operation(route: Route, shapes: Shapes) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "tags": [route.tag],
        "x-scope": route.scope.value,
        "responses": {str(route.status): _wanted(route, shapes)},
    }
    if route.description:
        operation["description"] = " ".join(route.description.split())
    if parameters := [*_path(route), *_query(route), *([_CONDITION] if route.guarded else [])]:
        operation["parameters"] = parameters
    if route.request is not None:
        required = any(field.required for field in msgspec.structs.fields(route.request))
        operation["requestBody"] = {"required": required, "content": {_JSON: {"schema": shapes[route.request]}}}
    for status in route.errors:
        operation["responses"][str(status)] = {"$ref": "#/components/responses/Problem"}
    return operation


def _wanted(route: Route, shapes: Shapes) -> dict[str, Any]:
    phrase = HTTPStatus(route.status).phrase
    if route.response is None:
        return {"description": phrase}
    if not _is_json(route):
        return {"description": phrase, "content": {_EVENTS: {"schema": {"type": "string"}}}}
    answer = _answer(phrase, shapes[route.response], _JSON)
    if route.guarded or route.name in {"show_job", "show_schedule"}:
        answer["headers"] = {"ETag": {"description": "The version, for If-Match.", "schema": {"type": "string"}}}
    return answer


def _answer(description: str, schema: dict[str, Any], media_type: str) -> dict[str, Any]:
    return {"description": description, "content": {media_type: {"schema": schema}}}


def _path(route: Route) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": _PATH[name],
            "schema": {"type": "string", "minLength": 1},
        }
        for name in route.parameters
    ]


def _query(route: Route) -> list[dict[str, Any]]:
    if route.query is None:
        return []
    schema = msgspec.json.schema_components([route.query], ref_template=_REF)[1][route.query.__name__]
    return [
        {"name": name, "in": "query", "required": False, "schema": _without_null(shape)}
        for name, shape in schema["properties"].items()
    ]


def _without_null(shape: dict[str, Any]) -> dict[str, Any]:
    """The schema without null: a parameter is None only if it is omitted."""
    kinds = [each for each in shape.get("anyOf", []) if each.get("type") != "null"]
    if not kinds:
        return shape
    rest = {key: value for key, value in shape.items() if key not in {"anyOf", "default"}}
    return {**kinds[0], **rest} if len(kinds) == 1 else {"anyOf": kinds, **rest}


def _finished(schemas: Mapping[str, Any], types: Iterable[Any]) -> dict[str, Any]:
    """The schemas of views as they are sent: stored documents are any JSON, and times have a format."""
    structs = _structs(types)
    return {name: _finished_one(shape, structs.get(name)) for name, shape in sorted(schemas.items())}


def _finished_one(shape: dict[str, Any], kind: Any) -> dict[str, Any]:
    if kind is None:
        return shape
    description = " ".join((inspect.getdoc(kind) or "").split("\n\n")[0].split())
    finished = {**shape, "description": description} if description else shape
    if "properties" not in shape:
        return finished
    documents = DOCUMENTS.get(kind, frozenset())
    fields = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
    return {
        **finished,
        "properties": {
            name: {"description": "Any JSON."} if name in documents else _dated(each, fields[name])
            for name, each in shape["properties"].items()
        },
    }


def _dated(shape: dict[str, Any], kind: Any) -> dict[str, Any]:
    """The schema with the format `date-time` for every time."""
    if kind is datetime:
        return {**shape, "format": "date-time"}
    inner = [one for one in get_args(kind) if one is datetime]
    if inner and "anyOf" in shape:
        return {
            **shape,
            "anyOf": [_dated(one, datetime) if one.get("type") == "string" else one for one in shape["anyOf"]],
        }
    if inner and "items" in shape:
        return {**shape, "items": _dated(shape["items"], datetime)}
    return shape


def _structs(types: Iterable[Any]) -> dict[str, Any]:
    """All structs and enums in these types, by the names that their schemas may have."""
    found: dict[str, Any] = {}
    waiting, seen = list(types), set()
    while waiting:
        kind = waiting.pop()
        waiting.extend(get_args(kind))
        if not isinstance(kind, type) or kind in seen or not issubclass(kind, Struct | Enum):
            continue
        seen.add(kind)
        found[kind.__name__] = found[f"{kind.__module__}.{kind.__qualname__}"] = kind
        if issubclass(kind, Struct):
            waiting.extend(field.type for field in msgspec.structs.fields(kind))
    return found
