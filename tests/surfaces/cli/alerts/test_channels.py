"""`perdure alerts`: what an operator reads of channels and keys."""

from __future__ import annotations

import pytest
from tests.surfaces.conftest import Arrange, Cli

from perdure.operate.alerts.sealing import KEY_VARIABLE
from perdure.operate.desk import Desk
from perdure.storage.port import Store
from perdure.surfaces.cli.exits import Exit

MAIL = "smtp://localhost/?from=a@example.com&to=b@example.com&tls=none"


@pytest.fixture(autouse=True)
def migrated(arrange: Arrange[None]) -> None:
    """An empty database."""
    arrange(lambda store: store.check_schema())


def test_what_the_key_command_prints_can_be_set_as_it_is(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, cli("alerts", "key").out.strip())
    saved = cli("alerts", "channels", "add", "ops", "--address", "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ")
    assert (saved.code, "stored encrypted" in saved.out, saved.err) == (Exit.OK, True, "")


def test_a_channel_that_has_failed_since_its_last_notice_is_not_called_fine(cli: Cli, arrange: Arrange[None]) -> None:
    async def outcome(store: Store, error: str | None) -> None:
        notice = await Desk(store, "ada").alerts.test("ops")
        await store.note_delivery(notice.id, "ops", error)

    cli("alerts", "channels", "add", "ops", "--address", MAIL)
    assert "not used yet" in cli("alerts", "channels", "list").out
    for error, state in ((None, "fine"), ("the mail server is away", "failed last")):
        arrange(lambda store, error=error: outcome(store, error))  # type: ignore[misc]
        assert f" {state} " in cli("alerts", "channels", "list").out
