"""Connects a command to the database by URL alone, without the app's code."""

from __future__ import annotations

import asyncio
import getpass
import os
import socket
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final, TypeVar

from perdure.app.connect import listen_url_for, refuse_missing_file, store_for
from perdure.operate.desk import Desk
from perdure.policy.secrets.passwords import without_password
from perdure.storage.port import Store
from perdure.surfaces.cli.project import database_url

Result = TypeVar("Result")

SOURCE: Final = "cli"
QUERY_TIME_LIMIT: Final = timedelta(seconds=10)
"""How long a query of a command may take; a list that must scan jobs stops after half a second."""


def with_desk(url: str | None, work: Callable[[Desk], Awaitable[Result]]) -> Result:
    """Open the database, check its schema, and call this with its desk."""

    async def at_the_desk(store: Store) -> Result:
        await store.check_schema()
        return await work(Desk(store, actor(), SOURCE, time_limit=QUERY_TIME_LIMIT))

    return with_store(url, at_the_desk)


def with_store(url: str | None, work: Callable[[Store], Awaitable[Result]], *, create: bool = False) -> Result:
    """Open the database without checking its schema, and call this with its store. `create` makes a missing file."""

    async def session() -> Result:
        meant = database_url(url)
        store = store_for(meant, listen_url=listen_url_for(meant))
        if not create:
            refuse_missing_file(meant)
        await store.open()
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(session())


def actor() -> str:
    """The actor for the audit trail: the user at the terminal."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container may have no name for this user
        user = f"uid {os.getuid()}"
    return f"cli:{user}@{socket.gethostname()}"


def shown_url(url: str | None) -> str:
    """The URL without its password."""
    return without_password(database_url(url))
