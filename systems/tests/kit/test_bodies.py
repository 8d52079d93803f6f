"""A body that cannot be read is a 400 that names the field, what is allowed, and the value."""

from __future__ import annotations

from typing import Annotated, Any

import httpx
import msgspec
import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from perdure_systems.kit.web import JsonResponse, api, read_body


class Inner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rollout: Annotated[int, msgspec.Meta(ge=0, le=100)] = 0


class Body(msgspec.Struct, frozen=True):
    updates: Inner
    names: list[str] = []


async def take(request: Request) -> Response:
    return JsonResponse(await read_body(request, Body))


@pytest.mark.parametrize(
    ("body", "field", "detail"),
    [
        ({"updates": {"rollout": 101}}, "updates.rollout", "Expected `int` <= 100 - at `updates.rollout`, got 101"),
        ({"updates": {"rollout": "x" * 500}}, "updates.rollout", f', got "{"x" * 79}'),
        ({"updates": {"rollout": True}}, "updates.rollout", ", got true"),
        ({"updates": {"colour": 1}}, "updates", "Object contains unknown field `colour` - at `updates`"),
        ({}, "updates", "Object missing required field `updates`"),
        ({"updates": {}, "names": ["a", 1]}, "names[1]", "Expected `str`, got `int` - at `names[1]`, got 1"),
        ([], None, "Expected `object`, got `array`"),
    ],
)
async def test_a_bad_field_is_named_with_its_value(body: Any, field: str | None, detail: str) -> None:
    transport = httpx.ASGITransport(app=api([Route("/", take, methods=["POST"])]))
    async with httpx.AsyncClient(transport=transport, base_url="http://system") as client:
        answer = await client.post("/", json=body)
    assert answer.status_code == 400
    assert answer.json().get("field") == field
    assert answer.json()["detail"].endswith(detail)
