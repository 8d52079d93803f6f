"""An application behind the access layer that says who calls."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.requests import Request
from starlette.responses import Response
from tests.support.databases.databases import SqliteFiles
from tests.support.web.asgi import Answered, Browser

from perdure.app.connect import store_for
from perdure.clock import ManualClock
from perdure.operate.desk import Desk
from perdure.storage.port import Store
from perdure.surfaces.access.access import Access
from perdure.surfaces.access.middleware import AccessMiddleware
from perdure.surfaces.access.settings import AccessSettings

Guard = Callable[..., AccessMiddleware]


async def tell(scope: Any, receive: Any, send: Any) -> None:
    """Answer with the caller and the body."""
    caller = scope.get("perdure.caller")
    body = await Request(scope, receive).body()
    answer = {"caller": msgspec.to_builtins(caller), "body": body.decode()}
    await Response(msgspec.json.encode(answer), media_type="application/json")(scope, receive, send)


@pytest.fixture
async def sqlite_store(tmp_path: Path, sqlite_files: SqliteFiles, clock: ManualClock) -> AsyncIterator[Store]:
    """A store on one engine, for tests that are not about the database."""
    sqlite_files.put(tmp_path / "access.db")
    store = store_for(f"sqlite:///{tmp_path / 'access.db'}", clock)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def guard(sqlite_store: Store, clock: ManualClock) -> Guard:
    """Put the access layer with these settings before the application."""
    return lambda **settings: guarded(sqlite_store, clock, **settings)


def guarded(store: Store, clock: ManualClock, **settings: Any) -> AccessMiddleware:
    """The access layer of a store before the application."""

    async def opened() -> Store:
        return store

    return AccessMiddleware(tell, Access(opened, AccessSettings(**settings), clock=clock))


async def make_token(store: Store, scope: str = "operate", name: str = "alice", **more: Any) -> str:
    """The secret of a new token."""
    return (await Desk(store, "test").create_token(name, scope, **more))[1]


def field(page: Answered, name: str) -> str:
    """The value of a hidden field of a form."""
    found = re.search(rf'name="{name}" value="([^"]*)"', page.text)
    assert found, page.text
    return found[1]


async def log_in(browser: Browser, secret: str, goal: str = "") -> Answered:
    """Go to the login page and send its form."""
    page = await browser.get(f"/login?next={goal}" if goal else "/login")
    return await browser.post("/login", {"token": secret, "_csrf": field(page, "_csrf"), "next": field(page, "next")})
