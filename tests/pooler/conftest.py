"""Everything here reaches PostgreSQL through a real PgBouncer."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.support.databases.behind import with_option
from tests.support.databases.databases import SCHEMA
from tests.support.databases.pgbouncer import MISSING, PROGRAM, PgBouncer

StartPooler = Callable[..., PgBouncer]


@pytest.fixture(scope="session")
def pooler(postgres_url: str) -> Iterator[PgBouncer]:
    """A pooler in transaction mode, for all tests."""
    _require_program()
    pooler = PgBouncer(postgres_url, mode="transaction")
    try:
        yield pooler
    finally:
        pooler.discard()


@pytest.fixture
def start_pooler(postgres_url: str) -> Iterator[StartPooler]:
    """Start a pooler with settings of its own, as often as called."""
    _require_program()
    started: list[PgBouncer] = []

    def start(*, mode: str = "transaction", size: int = 20) -> PgBouncer:
        started.append(PgBouncer(postgres_url, mode=mode, size=size))
        return started[-1]

    yield start
    for pooler in started:
        pooler.discard()


@pytest.fixture
def direct_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A database that only this test knows, with our tables and nothing in them, without the pooler."""
    with request.getfixturevalue("postgres_database").lent() as url:
        yield with_option(url, "schema", SCHEMA)


@pytest.fixture
def engine_url(pooler: PgBouncer, direct_url: str) -> str:
    """The same database through a pooler in transaction mode: takes the place of the fixture for both engines."""
    return pooler.url(direct_url)


def _require_program() -> None:
    if PROGRAM is None:
        pytest.skip(MISSING)
