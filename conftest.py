"""Databases for all tests, of the engine and of the systems: every test gets one of its own, on either engine."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from tests.support.databases.behind import with_option
from tests.support.databases.databases import SCHEMA, PostgresDatabase, SqliteFiles
from tests.support.databases.postgres import PostgresServer, drop_schema
from tests.support.run import keep_files_in_memory, rewrite_a_share, spared_garbage


def pytest_configure(config: pytest.Config) -> None:
    """Heed what a shell's background job or `nohup` ignores, so that the processes of tests do: they inherit it."""
    keep_files_in_memory()
    rewrite_a_share(config)
    for one in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(one) is signal.SIG_IGN:
            signal.signal(one, signal.default_int_handler if one is signal.SIGINT else signal.SIG_DFL)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect all tests."""
    with spared_garbage():
        return (yield)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write the failed tests, one a line, to the file that PERDURE_FAILED_TESTS names: `.ci/run` reads it."""
    if file := os.environ.get("PERDURE_FAILED_TESTS"):
        reports = [*terminalreporter.getreports("failed"), *terminalreporter.getreports("error")]
        Path(file).write_text("".join(f"{report.nodeid}\n" for report in reports), encoding="utf-8")


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL server for the whole run: our own, or the one that PERDURE_TEST_POSTGRES names."""
    if given := os.environ.get("PERDURE_TEST_POSTGRES"):
        yield given
        return
    server = PostgresServer()
    try:
        yield server.url
    finally:
        server.discard()


@pytest.fixture(scope="session")
def sqlite_files(tmp_path_factory: pytest.TempPathFactory) -> SqliteFiles:
    """As many migrated files as are asked for."""
    return SqliteFiles(tmp_path_factory.mktemp("original"))


@pytest.fixture(scope="session")
def postgres_database(postgres_url: str) -> Iterator[PostgresDatabase]:
    """A migrated database for one test after the other."""
    database = PostgresDatabase(postgres_url)
    try:
        yield database
    finally:
        database.drop()


@pytest.fixture(params=["sqlite", "postgres"])
def engine_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database that only this test knows, with our tables and nothing in them."""
    if request.param == "sqlite":
        file = tmp_path / "perdure.db"
        request.getfixturevalue("sqlite_files").put(file)
        yield f"sqlite:///{file}"
        return
    with request.getfixturevalue("postgres_database").lent() as url:
        yield with_option(url, "schema", SCHEMA)


@pytest.fixture(params=["sqlite", "postgres"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database without tables: a file that is not there yet, or the name of a schema that is gone afterwards."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'perdure.db'}"
        return
    schema = f"t_{uuid.uuid4().hex[:16]}"
    server = request.getfixturevalue("postgres_url")
    yield with_option(server, "schema", schema)
    drop_schema(server, schema)
