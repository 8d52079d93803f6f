"""Whatever a client sends, the API keeps what its OpenAPI document says: no 5xx, no answer that is not described.

Requests are made from the document itself: values that fit it, and values that do not. Examples are bounded and always
the same ones in the fast tier; the proof tier draws more, on PostgreSQL too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import CheckFunction, not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.support.web.http_server import Running, serving
from tests.support.web.http_site import make_app

from perdure.surfaces.api.openapi import openapi
from perdure.surfaces.api.router import BASE
from perdure.surfaces.api.routes import ROUTES

CHECKS: list[CheckFunction] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
SLOW = {"follow", "show_profile", "show_locks"}  # one does not end, the others take seconds
FEW = settings(
    max_examples=4,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def check_all(running: Running, token: str | None, rules: settings) -> None:
    document = openapi(ROUTES, f"{running.address}{BASE}")
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=f"{running.address}{BASE}")
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    for result in schema.get_all_operations():
        operation: Any = result.ok()  # type: ignore[union-attr] # an error of ours would end the test
        if operation.definition.raw["operationId"] in SLOW:
            continue
        modes = schemathesis.GenerationMode
        cases = st.one_of(
            operation.as_strategy(generation_mode=modes.POSITIVE), operation.as_strategy(generation_mode=modes.NEGATIVE)
        )

        @rules
        @given(case=cases)
        def keeps_the_contract(case: Any) -> None:
            response = case.call(headers=headers, timeout=20)
            case.validate_response(response, checks=CHECKS)

        keeps_the_contract()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder: Path = tmp_path_factory.mktemp("contract")
    with serving(make_app(f"sqlite:///{folder}/a.db")) as running:
        yield running


@pytest.mark.slow
@pytest.mark.parametrize("scope", [None, "read", "admin"])
def test_the_contract_is_kept(running: Running, scope: str | None) -> None:
    check_all(running, None if scope is None else running.tokens[scope], FEW)


@pytest.mark.proof
def test_the_contract_is_kept_over_many_requests(engine_url: str) -> None:
    with serving(make_app(engine_url)) as running:
        check_all(running, running.tokens["admin"], settings(FEW, max_examples=40, derandomize=False))
