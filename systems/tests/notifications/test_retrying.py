"""A notification that fails comes back 1, 2, 4 and 8 minutes later, and is dead after the fifth failure."""

from __future__ import annotations

import pytest

from perdure.testing import Sandbox
from perdure_systems.notifications.jobs import app, notify


async def test_a6_a_channel_that_is_gone_closes_as_sent_with_a_note(engine_url: str) -> None:
    async with Sandbox(app, url=engine_url) as box:
        handle = await notify.enqueue(channel="fax", subject="s", body="b")
        assert (await box.drain()).succeeded == 1
        view = await handle.view()
    assert view.warnings == ("not sent: there is no notifier for the channel 'fax'",)
    assert (view.failures, view.due_at) == (0, None)


async def test_a3_waits_double(engine_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CERTCTL_SLACK_WEBHOOK_URL", "http://127.0.0.1:9/none")
    async with Sandbox(app, url=engine_url) as box:
        handle = await notify.enqueue(channel="slack", subject="s", body="b")
        drained = await box.drain(travel=True)
        assert drained.dead == 1
