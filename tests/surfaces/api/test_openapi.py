"""The OpenAPI document is valid, and the files in docs/reference are up to date."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR
from tools import http_api

from perdure.surfaces.api.openapi import openapi
from perdure.surfaces.api.route import Route
from perdure.surfaces.api.routes import ROUTES


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(openapi(ROUTES)))
    return made


def test_it_is_an_openapi_3_1_document(document: dict[str, Any]) -> None:
    OPENAPI_31_VALIDATOR.validate(document)
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


def test_no_name_shows_where_the_code_of_a_type_stands(document: dict[str, Any]) -> None:
    assert [name for name in document["components"]["schemas"] if "." in name] == []


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    def references(part: Any) -> list[str]:
        if isinstance(part, dict):
            own = [part["$ref"]] if isinstance(part.get("$ref"), str) else []
            return own + [found for each in part.values() for found in references(each)]
        return [found for each in part for found in references(each)] if isinstance(part, list) else []

    for reference in set(references(document)):
        place = document
        for step in reference.removeprefix("#/").split("/"):
            place = place[step]


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_every_route_has_its_operation(document: dict[str, Any], route: Route) -> None:
    operation = document["paths"][route.path][route.method.lower()]
    assert operation["x-scope"] == route.scope
    assert {"401", "403", "503"} <= operation["responses"].keys()


def test_the_committed_document_and_page_are_up_to_date() -> None:
    """Run `python tools/http_api.py` if they are not."""
    assert http_api.DOCUMENT.read_text(encoding="utf-8") == http_api.document()
    page = http_api.PAGE.read_text(encoding="utf-8")
    assert page == http_api.render(page)
