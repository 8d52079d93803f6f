"""Services of Apprise get one call, at a public address, and their keys stay secret."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any

import pytest
from tests.signals.alerts.test_mail import a_notice
from tests.support.receiver import receiving

from perdure import App
from perdure.signals.alerts.delivery import deliver_notice
from perdure.signals.alerts.errors import DeliveryFailed
from perdure.signals.alerts.services import notify_service
from perdure.signals.webhooks.errors import SendRefused


async def test_a_service_of_apprise_on_a_private_host_is_refused_and_one_that_is_allowed_is_called(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = await app.desk("ops")
    async with receiving() as hook:
        monkeypatch.setenv("CHAT", f"mmost://127.0.0.1:{hook.port}/{'a' * 26}")
        await desk.alerts.save_channel("chat", "env:CHAT", allow_private=True)
        await desk.alerts.save_channel("wary", "env:CHAT")
        notice = await desk.alerts.test(["chat", "wary"])
        await deliver_notice(await app.store(), notice.id, "chat")
        with pytest.raises(SendRefused, match=r"not a public address; .* --allow-private"):
            await deliver_notice(await app.store(), notice.id, "wary")
    [request] = hook.received
    assert b"If you read it, the channel works." in request.body


async def test_a_service_that_fails_or_redirects_is_asked_once_and_its_key_is_never_reported(
    app: App, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)  # the libraries below it write addresses
    desk = await app.desk("ops")
    for status in (503, 302):
        async with receiving() as hook:
            hook.status, hook.extra = status, f"Location: {hook.url}\r\n"
            monkeypatch.setenv("CHAT", f"mmost://127.0.0.1:{hook.port}/{'s3cret' * 5}")
            await desk.alerts.save_channel("chat", "env:CHAT", allow_private=True)
            notice = await desk.alerts.test("chat")
            with pytest.raises(DeliveryFailed, match="did not take the notice") as failed:
                await deliver_notice(await app.store(), notice.id, "chat")
        assert len(hook.received) == 1
        assert "s3cret" not in str(failed.value) + caplog.text + str(await desk.alerts.channels())


async def test_a_name_that_leads_elsewhere_when_it_is_called_is_refused(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address is checked where the connection is made: what the name led to before means nothing."""
    desk = await app.desk("ops")
    async with receiving() as hook:
        resolve_as(monkeypatch, "chat.example.com", "127.0.0.1")
        monkeypatch.setenv("CHAT", f"mmost://chat.example.com:{hook.port}/{'a' * 26}")
        await desk.alerts.save_channel("chat", "env:CHAT")
        notice = await desk.alerts.test("chat")
        with pytest.raises(SendRefused, match=r"leads to 127\.0\.0\.1, which is not a public address"):
            await deliver_notice(await app.store(), notice.id, "chat")
        assert hook.connections == 0
        _, writer = await asyncio.open_connection("127.0.0.1", hook.port)  # the rest of the process may
        writer.close()


async def test_a_name_that_stands_for_a_key_is_not_reported(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """ntfy://topic goes to ntfy.sh: the topic is no host, and who knows it can read along."""
    desk = await app.desk("ops")
    resolve_as(monkeypatch, "ntfy.sh", None)
    monkeypatch.setenv("CHAT", "ntfy://s3cret")
    await desk.alerts.save_channel("chat", "env:CHAT")
    notice = await desk.alerts.test("chat")
    with pytest.raises(DeliveryFailed, match="the service of ntfy:// was not reached: its host has no address"):
        await deliver_notice(await app.store(), notice.id, "chat")
    assert "s3cret" not in str(await desk.alerts.channels())


async def test_the_text_of_an_error_mentions_no_user_and_is_cut_to_the_limit_of_the_service() -> None:
    words = a_notice("died: @everyone <!channel>", "x" * 7_000)
    async with receiving() as hook:
        address = f"mmost://127.0.0.1:{hook.port}/{'a' * 26}"
        await notify_service("mmost", address, words, allow_private=True, is_open=never)
    [request] = hook.received
    said = request.json()["text"]
    assert "died: @\u200beveryone <\u200b!channel>" in said
    assert len(said) <= 4_000


async def never(_key: str) -> bool:
    """There are no incidents here."""
    return False


def resolve_as(monkeypatch: pytest.MonkeyPatch, name: str, address: str | None) -> None:
    """Have a name lead to this address, or nowhere."""
    resolve = socket.getaddrinfo

    def answer(host: Any, *args: Any, **named: Any) -> Any:
        if host != name:
            return resolve(host, *args, **named)
        if address is None:
            resolve("name.invalid", *args, **named)
        return resolve(address, *args, **named)

    monkeypatch.setattr(socket, "getaddrinfo", answer)
