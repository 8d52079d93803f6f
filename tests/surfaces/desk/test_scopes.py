"""Every route of the desk with every scope, made from the table of rooms: no path is forgotten."""

from __future__ import annotations

import re
from itertools import product

import pytest
from httpx import ASGITransport, AsyncClient
from tests.support.builders.jobs import enqueue
from tests.support.web.desk_site import desk_site

from perdure.domain.operate.access import Scope
from perdure.operate.desk import Desk
from perdure.storage.port import Store
from perdure.surfaces.access.caller import Caller
from perdure.surfaces.access.settings import AccessSettings
from perdure.surfaces.desk.pages import ROOMS
from perdure.surfaces.desk.rooms import Entry
from perdure.surfaces.server.site import Site

ENTRIES = [entry for room in ROOMS for entry in room.entries]
LOGIN = "/login?next="


def path_of(entry: Entry) -> str:
    """The path with a name in it that nothing has."""
    return re.sub(r"{[^}]*}", "nothing", entry.path)


def test_what_changes_something_needs_more_than_read() -> None:
    assert len(ENTRIES) > 25
    assert [entry.path for entry in ENTRIES if entry.method != "GET" and entry.scope is Scope.READ] == []
    assert [entry.path for entry in ENTRIES if entry.method == "GET" and entry.scope is not Scope.READ] == ["/tokens"]
    assert {entry.scope for entry in ENTRIES if entry.path.startswith("/tokens")} == {Scope.ADMIN}


@pytest.mark.parametrize(("scope", "read_only"), [*product(Scope, (False,)), (Scope.ADMIN, True)])
async def test_every_route_needs_its_scope(store: Store, scope: Scope, read_only: bool) -> None:
    await enqueue(store)
    caller = Caller(name="eve", scope=scope, source="desk")
    site = desk_site(store, caller=caller, read_only=read_only)
    async with AsyncClient(transport=ASGITransport(site), base_url="http://127.0.0.1") as pages:
        for entry in ENTRIES:
            answer = await pages.request(entry.method, path_of(entry))  # commands are asked for, not confirmed
            allowed = scope.allows(entry.scope) and (entry.scope is Scope.READ or not read_only)
            assert (answer.status_code == 403) is not allowed, (entry.method, entry.path, answer.status_code)
            assert answer.status_code < 500, (entry.method, entry.path)
            other = "POST" if entry.method == "GET" else "PUT"
            if not any(one.path == entry.path and one.method == other for one in ENTRIES):
                assert (await pages.request(other, path_of(entry))).status_code in {403, 404, 405}, entry.path
    if not scope.allows(Scope.OPERATE) or read_only:
        assert (await Desk(store, "ada").audit()).entries == ()


async def test_without_a_token_no_route_answers(engine_url: str, store: Store) -> None:
    await enqueue(store)
    async with (
        Site(engine_url, access=AccessSettings(requires_token=True)) as site,
        AsyncClient(transport=ASGITransport(site), base_url="http://127.0.0.1") as pages,
    ):
        for entry in ENTRIES:
            answer = await pages.request(entry.method, path_of(entry), headers={"accept": "text/html"})
            if entry.method == "GET":
                assert answer.status_code == 303, entry.path
                assert answer.headers["location"].startswith(LOGIN), entry.path
            else:
                assert answer.status_code == 401, entry.path
            assert "content-security-policy" in answer.headers
        assert (await pages.get("/live")).status_code == 401
    assert (await Desk(store, "ada").audit()).entries == ()
