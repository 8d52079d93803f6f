"""Checks answers of the API against its OpenAPI document: the status is described, and the body fits its schema."""

from __future__ import annotations

from functools import cache
from typing import Any

import httpx
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from perdure.surfaces.api.openapi import openapi
from perdure.surfaces.api.router import BASE
from perdure.surfaces.api.routes import ROUTES


async def check_answer(response: httpx.Response) -> None:
    """Refuse an answer that the document does not describe; for `event_hooks` of a client."""
    path = response.request.url.raw_path.decode().partition("?")[0]
    if not path.startswith(BASE) or response.status_code == 405:
        return
    operation = _operation(response.request.method, tuple(path.removeprefix(BASE).removeprefix("/").split("/")))
    if operation is None:
        assert response.status_code == 404
        return
    described = operation["responses"].get(str(response.status_code))
    assert described is not None, f"{response.status_code} of {operation['operationId']} is not described"
    await response.aread()
    if "$ref" in described:
        described = _document()["components"]["responses"]["Problem"]
    content = described.get("content", {})
    if not content:
        assert not response.content
        return
    assert response.headers["content-type"] in content
    schema = content[response.headers["content-type"]]["schema"]
    errors = list(_validator(repr(schema)).iter_errors(response.json()))
    assert not errors, f"{operation['operationId']}: {errors[0].json_path}: {errors[0].message}"


@cache
def _document() -> Any:
    return openapi(ROUTES)


@cache
def _validator(schema: str) -> Any:
    own = eval(schema)  # noqa: S307 - our own schema, as a key that can be hashed
    return Draft202012Validator({**own, "components": _document()["components"]})


def _operation(method: str, parts: tuple[str, ...]) -> Any:
    found = [
        (sum(want.startswith("{") for want in wanted), operations)
        for pattern, operations in _document()["paths"].items()
        if len(wanted := pattern.strip("/").split("/")) == len(parts)
        and all(want.startswith("{") or want == part for want, part in zip(wanted, parts, strict=True))
    ]
    return min(found, key=lambda one: one[0])[1].get(method.lower()) if found else None
