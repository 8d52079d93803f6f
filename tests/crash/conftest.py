"""What the crash tests share: a server that may be killed, and a place for the figures they have seen."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.databases.behind import query, with_option
from tests.support.databases.postgres import PostgresServer

Tell = Callable[[str], None]
_FIGURES = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def mortal_server() -> Iterator[PostgresServer]:
    """A durable server of our own: it may be killed, but must be running again when a test ends."""
    server = PostgresServer(durable=True)
    try:
        yield server
    finally:
        server.discard()


@dataclass(frozen=True, slots=True)
class House:
    """A database that may be ill-treated; `server` is None for SQLite."""

    url: str
    server: PostgresServer | None

    @property
    def engine(self) -> str:
        """Its name."""
        return "PostgreSQL" if self.server else "SQLite"


@pytest.fixture
def postgres_house(mortal_server: PostgresServer) -> Iterator[House]:
    """A schema on the server that may be killed."""
    schema = f"t_{uuid.uuid4().hex[:16]}"
    url = with_option(mortal_server.url, "schema", schema)
    yield House(url, mortal_server)
    query(url, f"DROP SCHEMA IF EXISTS {schema} CASCADE")


@pytest.fixture
def sqlite_house(tmp_path: Path) -> House:
    """A file."""
    return House(f"sqlite:///{tmp_path / 'perdure.db'}", None)


@pytest.fixture(params=["sqlite", "postgres"])
def house(request: pytest.FixtureRequest) -> House:
    """Each of the two."""
    house: House = request.getfixturevalue(f"{request.param}_house")
    return house


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Tell:
    """Say something at the end of the test run: figures that were measured."""
    return request.config.stash.setdefault(_FIGURES, []).append


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show the figures."""
    if figures := config.stash.get(_FIGURES, []):
        terminalreporter.section("crash tests")
        for figure in figures:
            terminalreporter.write_line(figure)
