"""An app whose own database cannot even be opened: whatever works in these tests works in a sandbox."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from perdure import App
from perdure.testing import Sandbox


@pytest.fixture
def app() -> App:
    """An app of one test."""
    return App("sqlite:////no/such/folder/perdure.db", queues=["default", "mail", "reports"])


@pytest.fixture
async def box(app: App) -> AsyncIterator[Sandbox]:
    """The app in a sandbox."""
    async with Sandbox(app) as box:
        yield box
