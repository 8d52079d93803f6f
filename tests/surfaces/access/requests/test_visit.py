"""A request as the checks see it."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.surfaces.access.requests.authority import Authority
from perdure.surfaces.access.requests.visit import Visit, read_visit
from perdure.surfaces.access.settings import AccessSettings

BEHIND_A_PROXY = AccessSettings(proxies=["10.0.0.0/8", "unix"])


def visit(
    path: str = "/jobs", *, peer: str | None = "127.0.0.1", settings: AccessSettings | None = None, **more: Any
) -> Visit:
    """A GET request; `headers` are pairs of text."""
    headers = more.pop("headers", [("host", "desk:8484")])
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "headers": [(name.encode(), value.encode()) for name, value in headers],
        "client": None if peer is None else (peer, 50_000),
        "scheme": "http",
        "http_version": "1.1",
        "query_string": b"",
        **more,
    }
    return read_visit(scope, settings or AccessSettings())


def forwarded(*addresses: str, peer: str | None = "10.0.0.1") -> Visit:
    """A request through declared proxies."""
    headers = [("host", "desk"), *(("x-forwarded-for", each) for each in addresses), ("x-forwarded-proto", "https")]
    return visit(peer=peer, settings=BEHIND_A_PROXY, headers=headers)


@pytest.mark.parametrize("prefix", ["", "/ops"])
def test_a_path_is_without_the_prefix_whether_the_server_removed_it_or_not(prefix: str) -> None:
    for path in ("/jobs", f"{prefix}/jobs"):
        seen = visit(path, root_path=prefix)
        assert (seen.path, seen.url, seen.at("/x"), seen.home) == (
            "/jobs",
            f"{prefix}/jobs",
            f"{prefix}/x",
            f"{prefix}/",
        )
    assert visit(prefix, root_path=prefix).path == "/"
    assert visit("/opsroom", root_path=prefix).path == "/opsroom"


def test_a_url_never_names_another_host() -> None:
    assert visit("//evil.example/x").url == "/evil.example/x"
    assert visit("/a b", query_string=b"q=1").url == "/a%20b?q=1"
    assert visit("/a", query_string=b"q=\xe9").query == ""


def test_programs_are_reported_by_their_path() -> None:
    assert [visit(path).is_api for path in ("/api", "/api/v1/jobs", "/metrics", "/apis", "/jobs")] == [
        *(True, True, True, False, False)
    ]
    assert [visit(path).is_mcp for path in ("/mcp", "/mcp/x", "/mcps")] == [True, True, False]
    sources = [visit(path).source for path in ("/jobs", "/api", "/mcp")]
    assert sources == ["desk 127.0.0.1", "api 127.0.0.1", "mcp 127.0.0.1"]
    assert visit(peer=None).source == "desk unix"


def test_a_caller_counts_as_local_only_directly_on_loopback() -> None:
    assert visit().is_local
    assert not visit(peer="10.0.0.7").is_local
    assert not visit(peer=None).is_local
    assert not visit(http_version="1.0").is_local
    for name in ("x-forwarded-for", "x-forwarded-host", "forwarded", "x-real-ip", "via"):
        assert not visit(headers=[("host", "desk"), (name, "x")]).is_local


def test_the_client_is_the_nearest_address_that_is_no_proxy() -> None:
    """Entries left of it may be forged."""
    assert forwarded("6.6.6.6, 192.0.2.9, 10.0.0.2").address == "192.0.2.9"
    assert forwarded("6.6.6.6", "192.0.2.9").address == "192.0.2.9"
    assert forwarded("10.0.0.3").address == "10.0.0.1"
    assert forwarded("192.0.2.9, nonsense").address == "10.0.0.1"
    assert forwarded("192.0.2.9", peer=None).address == "192.0.2.9"
    assert forwarded("192.0.2.9", peer="203.0.113.5").address == "203.0.113.5"


def test_what_proxies_say_of_scheme_and_host_counts_only_from_declared_ones() -> None:
    headers = [("host", "inside"), ("x-forwarded-host", "desk.example.com"), ("x-forwarded-proto", "http, HTTPS")]
    inside = visit(peer="10.0.0.1", settings=BEHIND_A_PROXY, headers=headers)
    assert (inside.authority, inside.is_https) == (Authority("desk.example.com"), True)
    outside = visit(peer="203.0.113.5", settings=BEHIND_A_PROXY, headers=headers)
    assert (outside.authority, outside.is_https) == (Authority("inside"), False)


def test_a_request_with_two_hosts_or_none_has_no_authority() -> None:
    assert visit(headers=[]).authority is None
    assert visit(headers=[("host", "desk"), ("host", "evil")]).authority is None


def test_what_a_request_asks_for_is_read_from_its_method_and_headers() -> None:
    assert [visit(method=method).is_safe for method in ("get", "HEAD", "OPTIONS", "POST", "DELETE")] == [
        *(True, True, True, False, False)
    ]
    assert [visit(path).is_of_program for path in ("/api", "/mcp", "/jobs")] == [True, True, False]
    page = visit(headers=[("accept", "text/html,*/*"), ("hx-request", "true")])
    assert (page.wants_page, page.is_fragment) == (True, True)
    assert (visit().wants_page, visit().is_fragment) == (False, False)
