"""Requests that another site makes a browser send."""

from __future__ import annotations

import pytest
from starlette.datastructures import Headers

from perdure.surfaces.access.answers import Refused
from perdure.surfaces.access.requests.authority import Authority
from perdure.surfaces.access.requests.origins import (
    is_followed_link,
    refuse_other_hosts,
    refuse_other_sites,
    refuse_secret_in_url,
)
from perdure.surfaces.access.requests.visit import Visit
from perdure.surfaces.access.settings import AccessSettings

A_LINK = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


def visit(
    headers: dict[str, str] | None = None,
    *,
    method: str = "GET",
    path: str = "/jobs",
    query: str = "",
    host: str | None = "desk",
) -> Visit:
    return Visit(
        method=method,
        prefix="",
        path=path,
        query=query,
        headers=Headers(headers or {}),
        authority=None if host is None else Authority(host, 8484),
        address="127.0.0.1",
        is_https=False,
        is_local=True,
    )


def test_a_name_that_is_not_ours_is_refused_with_the_setting_that_allows_it() -> None:
    settings = AccessSettings(hosts=["desk"])
    refuse_other_hosts(visit(), settings)
    with pytest.raises(Refused, match="PERDURE_DESK_HOSTS=evil") as refused:
        refuse_other_hosts(visit(host="evil"), settings)
    assert refused.value.status == 421
    with pytest.raises(Refused) as refused:
        refuse_other_hosts(visit(host=None), settings)
    assert refused.value.status == 400


def test_an_address_is_a_name_of_ours_only_where_a_token_is_needed() -> None:
    refuse_other_hosts(visit(host="192.0.2.9"), AccessSettings(requires_token=True))
    with pytest.raises(Refused):
        refuse_other_hosts(visit(host="192.0.2.9"), AccessSettings())


@pytest.mark.parametrize(
    "headers",
    [
        *({"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}, {"origin": "null"}),
        *({"origin": "http://evil"}, {"origin": "http://desk:9"}),
    ],
)
def test_a_page_of_another_site_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(Refused) as refused:
        refuse_other_sites(visit(headers))
    assert refused.value.status == 403


def test_programs_and_our_own_pages_pass() -> None:
    for headers in ({}, {"sec-fetch-site": "same-origin", "origin": "http://desk:8484"}, {"sec-fetch-site": "none"}):
        refuse_other_sites(visit(headers))


def test_only_a_link_that_a_person_follows_to_a_page_is_repeated() -> None:
    assert is_followed_link(visit(A_LINK))
    assert not is_followed_link(visit(A_LINK, method="POST"))
    assert not is_followed_link(visit(A_LINK, path="/api/v1/jobs"))
    assert not is_followed_link(visit(A_LINK, path="/mcp"))
    for name, value in (
        ("origin", "http://evil"),
        ("sec-fetch-site", "same-origin"),
        ("sec-fetch-mode", "cors"),
        ("sec-fetch-dest", "iframe"),
    ):
        assert not is_followed_link(visit({**A_LINK, name: value}))


@pytest.mark.parametrize("query", ["token=x", "a=1&ACCESS_TOKEN=x", "next=pdr_" + "x" * 20])
def test_a_secret_in_a_url_is_refused(query: str) -> None:
    with pytest.raises(Refused, match="revoke this one"):
        refuse_secret_in_url(visit(query=query))


def test_words_that_only_resemble_a_token_pass() -> None:
    for query in ("", "q=token", "mytoken=x", "q=pdr_short"):
        refuse_secret_in_url(visit(query=query))
