"""Where the desk may listen."""

from __future__ import annotations

import pytest
from tests.surfaces.access.conftest import make_token

from perdure.clock import ManualClock
from perdure.errors import SettingsError
from perdure.operate.desk import Desk
from perdure.storage.port import Store
from perdure.surfaces.access.binding import settings_for
from perdure.surfaces.access.settings import AccessSettings


async def test_off_loopback_nothing_starts_without_a_token(sqlite_store: Store, clock: ManualClock) -> None:
    for host in ("127.0.0.1", "127.1.2.3", "::1", "localhost"):
        assert await settings_for(host, AccessSettings(), sqlite_store) == AccessSettings()
    with pytest.raises(SettingsError, match="perdure token create --name NAME --scope admin"):
        await settings_for("0.0.0.0", AccessSettings(), sqlite_store)  # noqa: S104 - it is refused
    await make_token(sqlite_store, name="short", expires="1s")
    made = await settings_for("desk.example.com", AccessSettings(hosts=["a.example"]), sqlite_store)
    assert (made.requires_token, made.hosts) == (True, ("a.example", "desk.example.com"))
    await Desk(sqlite_store, "bob").revoke_token("short")
    with pytest.raises(SettingsError, match=r"10\.0\.0\.1 needs a token"):
        await settings_for("10.0.0.1", AccessSettings(), sqlite_store)
    with pytest.raises(SettingsError, match=r"127\.0\.0\.1 needs a token"):
        await settings_for("127.0.0.1", AccessSettings(requires_token=True), sqlite_store)
