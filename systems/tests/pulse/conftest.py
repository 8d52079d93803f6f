"""Pulse with a model of its own, on either engine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import structlog
from structlog.typing import EventDict

from perdure.testing import Sandbox
from perdure_systems.pulse.jobs import app, database
from perdure_systems.pulse.standins import ModelStandin


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The fast tier runs on SQLite; what PostgreSQL adds, with a server of its own, is in the full one."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here) and "postgres" in item.name.partition("[")[2]:
            item.add_marker(pytest.mark.slow)


@pytest.fixture
async def standin(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ModelStandin]:
    """The model, and pulse's settings pointed at it; a document is split into pieces of 100 characters."""
    async with ModelStandin() as model:
        monkeypatch.setenv("PULSE_MODEL_URL", model.url)
        monkeypatch.setenv("PULSE_CHUNK_CHARACTERS", "100")
        yield model


@pytest.fixture
async def box(engine_url: str, standin: ModelStandin) -> AsyncIterator[Sandbox]:
    """Pulse in a sandbox, where the test moves the clock; a real worker works there, too."""
    del standin
    async with Sandbox(app, url=engine_url) as sandbox:
        try:
            yield sandbox
        finally:
            await database.close()


@pytest.fixture
def logged() -> Iterator[list[EventDict]]:
    """What is written to the log."""
    with structlog.testing.capture_logs() as lines:
        yield lines
