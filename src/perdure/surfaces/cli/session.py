"""A command's way to the database: by URL alone, without the app's code."""

from __future__ import annotations

import asyncio
import getpass
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from perdure.app.connect import listen_url_for, store_for
from perdure.errors import StoreRefused
from perdure.operate.desk import Desk
from perdure.policy.secrets.passwords import without_password
from perdure.storage.port import Store
from perdure.surfaces.cli.project import database_url

Result = TypeVar("Result")


def with_desk(url: str | None, work: Callable[[Desk], Awaitable[Result]]) -> Result:
    """Open the database, check its schema, and do this at its desk."""

    async def at_the_desk(store: Store) -> Result:
        await store.check_schema()
        return await work(Desk(store, actor()))

    return with_store(url, at_the_desk)


def with_store(url: str | None, work: Callable[[Store], Awaitable[Result]], *, create: bool = False) -> Result:
    """Open the database and do this with it, whatever its schema. A file is made only where that is meant."""

    async def session() -> Result:
        meant = database_url(url)
        store = store_for(meant, listen_url=listen_url_for(meant))
        if not create:
            _refuse_missing_file(meant)
        await store.open()
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(session())


def actor() -> str:
    """Who is typing, for the audit trail."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container may know no name for this user
        user = f"uid {os.getuid()}"
    return f"cli:{user}@{socket.gethostname()}"


def shown_url(url: str | None) -> str:
    """The URL without its password."""
    return without_password(database_url(url))


def _refuse_missing_file(url: str) -> None:
    """To look at a file that is not there would create it, empty, and hide a mistyped URL."""
    parts = urlsplit(url)
    if parts.scheme == "sqlite" and not Path(parts.path[1:]).exists():
        raise StoreRefused(
            f"{parts.path[1:]}: there is no such file: check --url, PERDURE_URL or [tool.perdure], "
            "or create it with `perdure migrate`"
        )
