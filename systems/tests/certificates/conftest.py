"""The certificate system in a sandbox, on both engines, with a certificate authority in a temporary folder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from systems.tests.certificates.programs import Api

from perdure.testing import Sandbox
from perdure_systems.certificates.jobs import app, database
from perdure_systems.certificates.web.routes import ROUTES
from perdure_systems.kit.web import api
from perdure_systems.notifications.jobs import app as notifications_app


@pytest.fixture(autouse=True)
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the root and its key are; a file in its place makes every signature fail."""
    folder = tmp_path / "ca"
    monkeypatch.setenv("CERTCTL_CA_FOLDER", str(folder))
    return folder


@pytest.fixture
async def box(engine_url: str) -> AsyncIterator[Sandbox]:
    """The app with its clock in the test's hands. Loops tick only where a test asks for them."""
    async with Sandbox(app, url=engine_url, periodic=False) as box, Sandbox(notifications_app, url=engine_url):
        yield box
        await database.close()


@pytest.fixture
async def client(box: Sandbox) -> AsyncIterator[Api]:
    """Requests to the API, over the sandbox's database."""
    transport = httpx.ASGITransport(api(ROUTES))
    async with Api(transport=transport, base_url="http://test") as client:
        yield client
