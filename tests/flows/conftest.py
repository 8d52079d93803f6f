"""An app whose jobs run in a sandbox, on either engine, with time in the test's hands."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from perdure import App
from perdure.testing import Sandbox

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def app() -> App:
    """An app without jobs."""
    return App("sqlite:///unused.db")


@pytest.fixture
async def box(app: App, engine_url: str) -> AsyncIterator[Sandbox]:
    """Its jobs, kept in an empty database."""
    async with Sandbox(app, url=engine_url, start=START) as box:
        yield box
