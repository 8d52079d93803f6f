"""Workers and transactions of handlers, through a pooler in transaction mode."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.effects import test_transaction
from tests.support.again import again
from tests.support.programs.effects import make_table
from tests.worker import test_worker
from tests.worker.gates import test_gatekeeper as test_gates

from perdure import App

globals().update(again(test_transaction, test_gates, test_worker))


@pytest.fixture
def url(engine_url: str) -> str:
    """Takes the place of the fixture for all engines."""
    return engine_url


@pytest.fixture
async def app(url: str) -> AsyncIterator[App]:
    """An app on a database with a table for handlers to write to."""
    async with App(url) as app:
        make_table(url)
        yield app
