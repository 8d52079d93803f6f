"""Logging in and out: cookies, sessions, brute force, and where a login may lead."""

from __future__ import annotations

import pytest
from tests.support.builders.jobs import HOUR, MINUTE
from tests.support.web.asgi import Browser
from tests.surfaces.access.conftest import Guard, field, guarded, log_in, make_token

from perdure.clock import ManualClock
from perdure.domain.operate.access import Scope
from perdure.errors import StoreRefused
from perdure.operate.desk import Desk
from perdure.storage.port import Store

COOKIE = "perdure_session_8484"
WRONG = "pdr_" + "x" * 43


async def test_a_login_opens_a_session_and_a_logout_ends_it(store: Store, clock: ManualClock) -> None:
    """On both engines; a new process of the desk knows the session."""
    secret = await make_token(store)
    browser = Browser(guarded(store, clock, requires_token=True))
    answer = await log_in(browser, secret, "/jobs")
    assert (answer.status, answer.headers["location"]) == (303, "/jobs")
    session = next(text for text in answer.cookies if text.startswith(COOKIE))
    assert session.split("; ")[1:] == ["Path=/", "Max-Age=43200", "HttpOnly", "SameSite=Strict"]
    assert secret not in session
    browser.app = guarded(store, clock, requires_token=True)  # the desk was started again
    caller = (await browser.get("/jobs")).json["caller"]
    assert (caller["name"], caller["scope"], caller["source"]) == ("alice", "operate", "desk 127.0.0.1")
    assert caller["has_session"]
    taken = dict(browser.cookies)
    assert (await browser.post("/logout", {"_csrf": "wrong"})).status == 403
    assert (await browser.get("/logout")).status == 405
    out = await browser.post("/logout", {"_csrf": caller["csrf"]})
    assert (out.status, out.headers["location"], COOKIE in browser.cookies) == (303, "/login", False)
    browser.cookies = taken
    assert (await browser.get("/jobs")).status == 303
    page = await Desk(store, "bob").audit(action="login")
    assert [(entry.actor, entry.source) for entry in page.entries] == [("alice", "desk 127.0.0.1")]


async def test_a_session_ends_with_its_time_and_with_its_token(
    guard: Guard, sqlite_store: Store, clock: ManualClock
) -> None:
    first = Browser(guard(requires_token=True, session_lifetime="1h"))
    await log_in(first, await make_token(sqlite_store, name="a"))
    clock.move(HOUR - MINUTE)
    assert (await first.get("/jobs")).status == 200
    clock.move(MINUTE)
    assert (await first.get("/jobs")).status == 303
    second = Browser(first.app)
    await log_in(second, await make_token(sqlite_store, name="b"))
    assert (await second.get("/jobs")).status == 200
    await Desk(sqlite_store, "bob").revoke_token("b")
    assert (await second.get("/jobs")).status == 303


async def test_a_session_that_was_planted_is_not_taken_over(guard: Guard, sqlite_store: Store) -> None:
    """Session fixation: a planted cookie is worthless after the login of another person."""
    app = guard(requires_token=True)
    attacker, victim = Browser(app), Browser(app)
    await log_in(attacker, await make_token(sqlite_store, name="mallory"))
    planted = attacker.cookies[COOKIE]
    victim.cookies[COOKIE] = planted
    await log_in(victim, await make_token(sqlite_store, name="alice"))
    assert victim.cookies[COOKIE] != planted
    assert (await victim.get("/jobs")).json["caller"]["name"] == "alice"
    assert (await attacker.get("/jobs")).status == 303
    invented = Browser(app)
    invented.cookies[COOKIE] = "pds_" + "a" * 43
    assert (await invented.get("/jobs")).status == 303


async def test_the_login_form_must_come_from_our_page(guard: Guard, sqlite_store: Store) -> None:
    secret = await make_token(sqlite_store)
    app = guard(requires_token=True)
    browser, other = Browser(app), Browser(app)
    foreign = field(await other.get("/login"), "_csrf")
    await browser.get("/login")
    for csrf in ("", "x", foreign):
        answer = await browser.post("/login", {"token": secret, "_csrf": csrf})
        assert (answer.status, COOKIE in browser.cookies) == (403, False)
    assert (await Browser(app).post("/login", {"token": secret, "_csrf": foreign})).status == 403
    assert (await log_in(browser, secret)).status == 303


@pytest.mark.parametrize(
    "goal",
    [
        "//evil.example",
        "https://evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "/%09/evil.example",
        "javascript:alert(1)",
        "/jobs%0d%0aSet-Cookie: a=b",
        "/jobs/%C3%A9",
        "jobs",
        "/login?next=/login",
        "/" + "x" * 3_000,
        "",
    ],
)
async def test_a_hostile_next_leads_to_the_first_page(guard: Guard, sqlite_store: Store, goal: str) -> None:
    answer = await log_in(Browser(guard()), await make_token(sqlite_store), goal)
    assert answer.headers["location"] in {"/", "/jobs/%C3%A9"}
    assert len([name for name, _ in answer.raw if name == "set-cookie"]) == 2


async def test_brute_force_is_slowed_for_an_address_and_for_all(
    guard: Guard, sqlite_store: Store, clock: ManualClock
) -> None:
    secret = await make_token(sqlite_store)
    app = guard(requires_token=True, login_failures=3, login_failures_of_all=8)

    async def tries(address: str, token: str) -> int:
        return (await log_in(Browser(app, address=address, host="10.0.0.1"), token)).status

    assert [await tries("10.0.0.7", WRONG) for _ in range(4)] == [401, 401, 401, 429]
    assert await tries("10.0.0.7", secret) == 429
    assert await tries("10.0.0.8", secret) == 303
    assert [await tries(f"2001:db8::{n}", WRONG) for n in range(4)] == [401, 401, 401, 429]
    assert [await tries(f"10.0.1.{n}", WRONG) for n in range(3)] == [401, 401, 429]
    assert await tries("10.0.0.8", secret) == 429
    clock.move(5 * MINUTE)
    assert await tries("10.0.0.7", secret) == 303


async def test_under_a_prefix_cookies_and_redirects_stay_under_it(guard: Guard, sqlite_store: Store) -> None:
    secret = await make_token(sqlite_store)
    browser = Browser(guard(requires_token=True), prefix="/admin/jobs")
    away = await browser.get("/queues")
    assert away.headers["location"] == "/admin/jobs/login?next=/admin/jobs/queues"
    answer = await log_in(browser, secret, "/admin/jobs/queues")
    assert answer.headers["location"] == "/admin/jobs/queues"
    assert all("; Path=/admin/jobs;" in text for text in answer.cookies)
    assert (await browser.get("/queues")).status == 200
    outside = await log_in(Browser(browser.app, prefix="/admin/jobs"), secret, "/admin/other")
    assert outside.headers["location"] == "/admin/jobs/"


async def test_over_https_the_cookie_is_secure(guard: Guard, sqlite_store: Store) -> None:
    secret = await make_token(sqlite_store)
    app = guard(requires_token=True, hosts=["desk.example.com"], proxies=["10.0.0.1"])
    answer = await log_in(Browser(app, host="desk.example.com", scheme="https"), secret)
    assert answer.cookies[0].startswith("__Secure-perdure_session=")
    assert answer.cookies[0].endswith("; Secure")
    behind = Browser(app, host="desk.example.com", address="10.0.0.1")
    page = await behind.get("/login", {"x-forwarded-proto": "https", "x-forwarded-for": "192.0.2.1"})
    assert page.cookies[0].endswith("; Secure")


async def test_a_database_that_takes_no_writes_still_lets_people_in(
    guard: Guard, sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = await make_token(sqlite_store, scope=Scope.READ)

    async def refuse(*_: object) -> None:
        raise StoreRefused("it is read-only")

    for name in ("open_session", "note_use", "record", "shared_key", "close_session"):
        monkeypatch.setattr(sqlite_store, name, refuse)
    browser = Browser(guard(requires_token=True))
    assert (await log_in(browser, secret)).status == 303
    assert (await browser.get("/jobs")).json["caller"]["name"] == "alice"
    monkeypatch.undo()
    await Desk(sqlite_store, "bob").revoke_token("alice")
    assert (await browser.get("/jobs")).status == 303


async def test_failures_are_logged_without_the_token(
    guard: Guard, caplog: pytest.LogCaptureFixture, sqlite_store: Store
) -> None:
    await log_in(Browser(guard(), address="10.0.0.7", host="127.0.0.1"), WRONG)
    assert "login failed: desk 10.0.0.7" in caplog.text
    assert WRONG not in caplog.text
