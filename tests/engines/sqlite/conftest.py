"""A store in a file of its own, for what only this engine promises."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from perdure.clock import ManualClock
from perdure.engines.sqlite.store import SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "perdure.db")


@pytest.fixture
async def sqlite(path: str, clock: ManualClock) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(path, clock=clock)
    await store.open()
    await store.migrate()
    yield store
    await store.close()
