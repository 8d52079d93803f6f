"""An outside world of stand-ins, quick instruments, and a sandbox on either engine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from perdure.testing import Sandbox
from perdure_systems.audits.jobs import app, database
from perdure_systems.audits.pipeline.instruments import using_instruments
from perdure_systems.audits.standins import Outside, QuickInstruments
from perdure_systems.notifications.jobs import app as notifications

TOKEN = "the-token"  # noqa: S105 - of a test
SECRET = "the-secret"  # noqa: S105 - of a test


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str, str], None]:
    """The settings of a test; call it with a variable and its value."""
    monkeypatch.setenv("AUDITS_API_TOKEN", TOKEN)
    monkeypatch.setenv("AUDITS_WEBHOOK_SECRET", SECRET)
    monkeypatch.setenv("AUDITS_STORAGE_DIR", str(tmp_path / "files"))
    monkeypatch.setenv("AUDITS_ALLOW_PRIVATE_ADDRESSES", "true")
    return monkeypatch.setenv


@pytest.fixture
async def outside(settings: Callable[[str, str], None]) -> AsyncIterator[Outside]:
    """A PageSpeed API, a site and a receiver; the settings point to them."""
    async with Outside() as services:
        settings("AUDITS_PAGESPEED_URL", services.api)
        settings("AUDITS_WEBHOOK_URL", services.hook)
        yield services


@pytest.fixture
def quick() -> Iterator[QuickInstruments]:
    """Instruments that take no time."""
    instruments = QuickInstruments()
    with using_instruments(instruments):
        yield instruments


@pytest.fixture
async def box(engine_url: str) -> AsyncIterator[Sandbox]:
    """The app in a sandbox; notifications go to the same database."""
    async with Sandbox(notifications, url=engine_url, periodic=False), Sandbox(app, url=engine_url) as sandbox:
        await database.migrate()
        yield sandbox
        await database.close()
