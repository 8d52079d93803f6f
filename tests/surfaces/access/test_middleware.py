"""What the access layer lets through, whatever the route: method × caller × Host × Origin × Sec-Fetch-Site."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import pytest
from tests.support.builders.jobs import MINUTE
from tests.support.web.asgi import PAGE, Browser, send
from tests.surfaces.access.conftest import Guard, log_in, make_token

from perdure.clock import ManualClock
from perdure.operate.desk import Desk
from perdure.storage.port import Store
from perdure.surfaces.access.requests.headers import CONTENT_SECURITY_POLICY

METHODS = ("GET", "OPTIONS", "POST", "DELETE", "PURGE")
SAFE = {"GET", "OPTIONS"}
HOSTS = {
    "localhost:8484": True,
    "127.0.0.1:8484": True,
    "[::1]:8484": True,
    "evil.example": False,
    "localhost.evil.example": False,
}
SITES = {None: True, "same-origin": True, "none": True, "same-site": False, "cross-site": False, "nonsense": False}
CALLERS = ("nobody", "local", "session", "session without csrf", "local without csrf", "bearer", "wrong bearer")


def origins(host: str) -> dict[str | None, bool]:
    return {
        None: True,
        f"http://{host}": True,
        "null": False,
        "http://evil.example": False,
        f"http://{host.rpartition(':')[0] or host}:1": False,
        f"http://{host}.evil.example": False,
        "": False,
    }


class Known(NamedTuple):
    """What callers know."""

    secret: str
    session: str
    session_csrf: str
    local_csrf: str


def told_by(caller: str, known: Known, host: str) -> dict[str, str]:
    """The headers of a caller."""
    port = f"_{host.rpartition(':')[2]}" if ":" in host else ""
    cookie = {"cookie": f"perdure_session{port}={known.session}"}
    return {
        "session": cookie | {"x-csrf-token": known.session_csrf},
        "session without csrf": cookie,
        "local": {"x-csrf-token": known.local_csrf},
        "bearer": {"authorization": f"Bearer {known.secret}"},
        "wrong bearer": {"authorization": "Bearer pdr_wrong"},
    }.get(caller, {})


def expected(method: str, caller: str, *, host_ok: bool, page_ok: bool) -> int:
    """The status that a request must get."""
    if not host_ok:
        return 421
    if not page_ok:
        return 403
    if caller in {"nobody", "wrong bearer"}:
        return 401
    return 403 if caller.endswith("without csrf") and method not in SAFE else 200


@pytest.mark.parametrize("path", ["/api/v1/jobs", "/jobs"])
async def test_every_method_caller_host_origin_and_site(guard: Guard, sqlite_store: Store, path: str) -> None:
    """Nothing gets through but what each check allows, on every method and on this machine too."""
    secret = await make_token(sqlite_store)
    here, closed = guard(), guard(requires_token=True)
    browser = Browser(closed)
    await log_in(browser, secret)
    own = (await browser.get("/x")).json["caller"]["csrf"]
    local = (await Browser(here).get("/x")).json["caller"]["csrf"]
    known = Known(secret, browser.cookies["perdure_session_8484"], own, local)
    for method, (host, host_ok), (site, site_ok), caller in product(METHODS, HOSTS.items(), SITES.items(), CALLERS):
        asks = Browser(closed if caller.startswith(("session", "nobody")) else here, host=host).ask
        for origin, origin_ok in origins(host).items():
            page = {"sec-fetch-site": site, "origin": origin}
            headers = told_by(caller, known, host) | {name: text for name, text in page.items() if text is not None}
            answer = await asks(method, path, headers)
            told = (method, caller, host, page, answer.text)
            assert answer.status == expected(method, caller, host_ok=host_ok, page_ok=site_ok and origin_ok), told
            assert answer.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
            assert (answer.headers["content-type"] == "application/problem+json") == (answer.status != 200), told


async def test_the_caller_says_name_scope_source_and_csrf(guard: Guard, sqlite_store: Store) -> None:
    secret = await make_token(sqlite_store)
    local = (await Browser(guard()).get("/jobs")).json["caller"]
    assert (local["name"], local["scope"], local["source"]) == ("local", "admin", "desk 127.0.0.1")
    assert len(local["csrf"]) == 64
    bearer = {"authorization": f"bearer {secret}"}
    known = (await Browser(guard(), address="10.0.0.7").ask("POST", "/api/v1/jobs", bearer)).json["caller"]
    assert known == {
        "name": "alice",
        "scope": "operate",
        "source": "api 10.0.0.7",
        "csrf": None,
        "has_session": False,
        "why_read_only": None,
    }
    capped = await Browser(guard(read_only=True)).ask("POST", "/api/v1/jobs", bearer)
    assert capped.json["caller"]["scope"] == "read"
    assert (await Browser(guard(read_only=True)).get("/jobs")).json["caller"]["scope"] == "read"


@pytest.mark.parametrize(
    ("address", "more"),
    [
        ("10.0.0.7", {}),
        (None, {}),
        ("127.0.0.1", {"x-forwarded-for": "10.0.0.7"}),
        ("127.0.0.1", {"forwarded": "for=10.0.0.7"}),
        ("127.0.0.1", {"via": "1.1 proxy"}),
        ("::ffff:10.0.0.7", {}),
    ],
)
async def test_a_caller_who_may_be_elsewhere_needs_a_token(guard: Guard, address: str, more: dict[str, str]) -> None:
    """A proxy on this machine must not make the whole world local."""
    assert (await Browser(guard(), address=address).ask("GET", "/api/v1/jobs", more)).status == 401


async def test_a_proxy_of_default_settings_is_not_taken_for_this_machine(guard: Guard) -> None:
    assert (await Browser(guard()).ask("GET", "/api/v1/jobs", http_version="1.0")).status == 401
    assert (await Browser(guard(), address="::ffff:127.0.0.1").ask("GET", "/api/v1/jobs")).status == 200


async def test_forwarded_headers_count_only_from_declared_proxies(guard: Guard, sqlite_store: Store) -> None:
    bearer = {"authorization": f"Bearer {await make_token(sqlite_store)}"}
    forwarded = bearer | {
        "x-forwarded-for": "6.6.6.6, 192.0.2.9, 10.0.0.2",
        "x-forwarded-proto": "https",
        "x-forwarded-host": "desk.example.com",
        "origin": "https://desk.example.com",
    }
    app = guard(hosts=["desk.example.com"], proxies=["10.0.0.0/8"], requires_token=True)
    behind = await Browser(app, address="10.0.0.1", host="inner").ask("POST", "/api/v1/jobs", forwarded)
    assert behind.json["caller"]["source"] == "api 192.0.2.9"
    assert (await Browser(app, address="192.0.2.1", host="inner").ask("POST", "/api/v1/jobs", forwarded)).status == 421
    direct = await Browser(app, address="192.0.2.1", host="desk.example.com").ask("GET", "/api/v1/jobs", forwarded)
    assert direct.json["caller"]["source"] == "api 192.0.2.1"


async def test_probes_static_files_and_the_login_page_are_open(guard: Guard) -> None:
    browser = Browser(guard(requires_token=True), address="10.0.0.7", host="10.0.0.1:8484")
    for path in ("/healthz", "/readyz", "/static/desk.css"):
        answer = await browser.get(path)
        assert (answer.status, answer.json["caller"]) == (200, None), path
    assert (await browser.get("/login")).status == 200
    assert (await Browser(guard(), host="some-pod").get("/healthz")).status == 200
    assert (await Browser(guard(), host="some-pod").get("/static/desk.css")).status == 421


async def test_pages_lead_to_the_login_page_and_scripts_are_reported(guard: Guard) -> None:
    browser = Browser(guard(requires_token=True))
    page = await browser.get("/jobs?q=state:dead")
    assert (page.status, page.headers["location"]) == (303, "/login?next=/jobs%3Fq%3Dstate%3Adead")
    fragment = await browser.get("/jobs", {"hx-request": "true"})
    assert (fragment.status, fragment.headers["hx-redirect"]) == (401, "/login")
    stream = await browser.ask("GET", "/live", {"accept": "text/event-stream"})
    assert (stream.status, stream.headers["content-type"]) == (401, "application/problem+json")
    sent = await browser.post("/jobs", {"a": "b"})
    assert (sent.status, sent.headers["content-type"]) == (401, "text/html; charset=utf-8")
    api = await browser.get("/api/v1/jobs")
    assert (api.status, api.headers["www-authenticate"]) == (401, 'Bearer realm="perdure"')


async def test_a_link_on_another_site_leads_to_the_page_and_to_nothing_else(guard: Guard) -> None:
    """The browser asks again from a page of ours; no request of another site reaches the application."""
    browser = Browser(guard())
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    page = await browser.get('/jobs?q="><script>', link)
    assert page.status == 200
    assert 'content="0;url=/jobs?q=&quot;&gt;&lt;script&gt;"' in page.text
    assert "caller" not in page.text
    assert 'url=/evil.example/"' in (await browser.get("//evil.example/", link)).text
    for other in (link | {"sec-fetch-dest": "iframe"}, link | {"sec-fetch-mode": "cors"}, link | {"origin": "null"}):
        assert (await browser.get("/jobs", other)).status == 403
    assert (await browser.post("/jobs", {}, link)).status == 403
    assert (await browser.get("/api/v1/jobs", link)).status == 403


@pytest.mark.parametrize("query", ["token={}", "a=1&access_token={}", "q={}", "TOKEN=x"])
async def test_a_token_in_a_query_string_is_refused(guard: Guard, sqlite_store: Store, query: str) -> None:
    secret = await make_token(sqlite_store)
    answer = await Browser(guard()).get(f"/api/v1/jobs?{query.format(secret)}")
    assert answer.status == 400
    assert secret not in answer.text


async def test_a_form_may_carry_the_csrf_value_and_is_handed_on_whole(guard: Guard) -> None:
    browser = Browser(guard())
    csrf = (await browser.get("/jobs")).json["caller"]["csrf"]
    form = {"why": "x" * 5_000, "_csrf": csrf}
    sent = await browser.post("/jobs/1/cancel", form)
    assert (sent.status, sent.json["body"].startswith("why=xxx")) == (200, True)
    for wrong in ({}, {"_csrf": ""}, {"_csrf": csrf[:-1]}, {"_csrf": "é"}):
        assert (await browser.post("/jobs/1/cancel", wrong)).status == 403
    json = await browser.ask("POST", "/jobs/1/cancel", {"content-type": "application/json"}, body=b'{"_csrf": "x"}')
    assert json.status == 403


async def test_the_csrf_value_is_the_same_in_every_process_on_the_database(guard: Guard) -> None:
    first, second = (await Browser(guard()).get("/jobs"), await Browser(guard()).get("/jobs"))
    assert first.json["caller"]["csrf"] == second.json["caller"]["csrf"]


async def test_a_body_that_is_too_large_is_refused_also_without_a_length(guard: Guard, sqlite_store: Store) -> None:
    app, bearer = guard(largest_body=2_000), {"authorization": f"Bearer {await make_token(sqlite_store)}"}
    browser = Browser(app)
    assert (await browser.ask("POST", "/api/v1/jobs", bearer, body=b"x" * 2_000)).status == 200
    assert (await browser.ask("POST", "/api/v1/jobs", bearer, body=b"x" * 2_001)).status == 413
    assert (await browser.ask("POST", "/api/v1/jobs", bearer | {"content-length": "2001"})).status == 413
    assert (await browser.ask("POST", "/api/v1/jobs", bearer | {"content-length": "-1"})).status == 400
    assert (await browser.post("/login", {"token": "x" * 3_000})).status == 413


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer ", "Basic YTpi", "Bearer pdr_", "Bearer pds_x", "pdr_x"])
async def test_a_header_without_a_valid_token_is_never_taken_for_a_local_caller(guard: Guard, given: str) -> None:
    assert (await Browser(guard()).ask("GET", "/api/v1/jobs", {"authorization": given})).status == 401


async def test_revoked_and_expired_tokens_do_not_let_in(guard: Guard, sqlite_store: Store, clock: ManualClock) -> None:
    short = await make_token(sqlite_store, name="short", expires="1m")
    long = await make_token(sqlite_store, name="long")
    browser = Browser(guard(requires_token=True))

    async def statuses() -> list[int]:
        told = [await browser.ask("GET", "/api/v1/x", {"authorization": f"Bearer {each}"}) for each in (short, long)]
        return [answer.status for answer in told]

    assert await statuses() == [200, 200]
    clock.move(MINUTE)
    assert await statuses() == [401, 200]
    await Desk(sqlite_store, "bob").revoke_token("long")
    assert await statuses() == [401, 401]


async def test_headers_of_the_answer_cannot_be_weakened(guard: Guard) -> None:
    answer = await Browser(guard()).get("/jobs")
    expected = {
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "referrer-policy": "same-origin",
        "cross-origin-opener-policy": "same-origin",
        "cache-control": "no-store",
    }
    assert expected.items() <= answer.headers.items()
    policy = answer.headers["content-security-policy"]
    for rule in ("default-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"):
        assert rule in policy
    assert "unsafe" not in policy


async def test_two_hosts_or_none_are_refused(guard: Guard) -> None:
    app = guard()
    scope = {"type": "http", "method": "GET", "path": "/jobs", "query_string": b"", "client": ("127.0.0.1", 1)}
    for hosts in ([], [(b"host", b"localhost"), (b"host", b"evil.example")], [(b"host", b"a b")], [(b"host", b"")]):
        assert (await send(app, scope | {"headers": hosts})).status == 400


async def test_a_desk_without_its_database_says_so(guard: Guard, sqlite_store: Store) -> None:
    app = guard(requires_token=True)
    await sqlite_store.close()
    answer = await Browser(app).ask("GET", "/api/v1/jobs", PAGE | {"authorization": "Bearer pdr_x"})
    assert (answer.status, answer.headers["retry-after"], answer.headers["perdure-away"]) == (503, "5", "database")
    bearer = PAGE | {"authorization": "Bearer pdr_x"}
    page = await Browser(app).ask("GET", "/dead", bearer)
    assert (page.status, "No answer from the database" in page.text) == (503, True)
    assert '<meta http-equiv="refresh" content="5">' in page.text  # it recovers by itself
    stranger = await Browser(app, address="192.0.2.7").ask("GET", "/dead", bearer)
    assert stranger.status == 503
    assert "The desk cannot use its database." in stranger.text
    assert "The desk cannot use its database." not in page.text  # here it is told where and why
