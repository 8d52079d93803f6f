"""Django's connection: what `transaction.atomic` commits or rolls back takes the jobs with it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import django
import pytest
from django.conf import settings
from django.db import connections, transaction
from django.utils.connection import ConnectionProxy
from msgspec import Struct
from tests.support.databases.behind import query, with_option

from perdure import App, DuplicateJobError, Handle, Job, OnConflict, Unique

if not settings.configured:
    settings.configure(DATABASES={})
    django.setup()


class Site(Struct):
    """A Django site whose database is also the app's."""

    alias: str
    connection: Any
    greet: Job[[str], None]
    table: str

    def enqueue(self, name: str, **options: Any) -> Handle[None]:
        return self.greet.using(connection=self.connection, **options).enqueue_sync(name)

    def execute(self, sql: str) -> list[Any]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall()) if cursor.description else []

    def notes(self) -> int:
        return int(self.execute(f"SELECT count(*) FROM {self.table}")[0][0])

    def is_there(self, handle: Handle[None]) -> bool:
        async def look() -> bool:
            async with App(self.greet._gateway.url) as app:  # type: ignore[attr-defined]
                return await (await app.store()).job(handle.id) is not None

        return asyncio.run(look())


@pytest.fixture(params=["postgresql", "sqlite"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    alias = f"site_{uuid.uuid4().hex[:8]}"
    if request.param == "sqlite":
        path = tmp_path / "site.db"
        url, table = f"sqlite:///{path}?driver=sqlite3", "note"
        database = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(path)}
    else:
        address = request.getfixturevalue("postgres_url")
        url, table = with_option(address, "schema", alias), f"{alias}.note"
        parts = urlsplit(address)
        host = dict(parse_qsl(parts.query)).get("host") or parts.hostname
        engine = {"ENGINE": "django.db.backends.postgresql", "NAME": parts.path[1:], "USER": parts.username}
        database = engine | {"HOST": host, "PORT": parts.port or "", "PASSWORD": parts.password or ""}
    connections.settings.update(connections.configure_settings({"default": {}, alias: database}))
    app = App(url)
    made = Site(alias, ConnectionProxy(connections, alias), app.job(name="greet")(_greet), table)
    app.enqueue_many_sync([])  # migrates
    made.execute(f"CREATE TABLE {table} (text text)")
    yield made
    made.connection.close()
    app.close_sync()
    if request.param == "postgresql":
        query(url, f"DROP SCHEMA {alias} CASCADE")


def _greet(name: str) -> None:
    """Say hello."""


def test_it_commits_with_the_atomic_block(site: Site) -> None:
    with transaction.atomic(using=site.alias):
        handle = site.enqueue("Ada")
        site.execute(f"INSERT INTO {site.table} VALUES ('order')")
        assert not site.is_there(handle)
    assert site.is_there(handle)
    assert site.notes() == 1


@pytest.mark.parametrize("outer", [True, False])
def test_it_rolls_back_with_the_block_that_it_is_in(site: Site, outer: bool) -> None:
    def roll_back(act: Callable[[], None]) -> None:
        with suppress(ZeroDivisionError), transaction.atomic(using=site.alias):
            act()
            raise ZeroDivisionError

    handles = []

    def write() -> None:
        site.execute(f"INSERT INTO {site.table} VALUES ('order')")
        handles.append(site.enqueue("Ada"))

    if outer:
        roll_back(write)
    else:
        with transaction.atomic(using=site.alias):
            kept = site.enqueue("Grace")
            roll_back(write)
        assert site.is_there(kept)
    assert not site.is_there(handles[0])
    assert site.notes() == 0


def test_a_rejected_job_leaves_the_block_usable(site: Site) -> None:
    rejecting = Unique(by=("name",), on_conflict=OnConflict.REJECT)
    with transaction.atomic(using=site.alias):
        site.enqueue("Ada", unique=rejecting)
        with pytest.raises(DuplicateJobError):
            site.enqueue("Ada", unique=rejecting)
        site.execute(f"INSERT INTO {site.table} VALUES ('order')")
        handle = site.enqueue("Grace")
    assert site.is_there(handle)
    assert site.notes() == 1


def test_without_a_block_it_is_stored_at_once(site: Site) -> None:
    site.connection.close()
    assert site.is_there(site.enqueue("Ada"))
    assert site.connection.get_autocommit()


def test_a_block_that_is_broken_stores_nothing_more(site: Site) -> None:
    with transaction.atomic(using=site.alias):
        site.connection.set_rollback(True)
        with pytest.raises(transaction.TransactionManagementError):
            site.enqueue("Ada")
