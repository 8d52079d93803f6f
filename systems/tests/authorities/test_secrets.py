"""Keys and passwords reach their authority only."""

from __future__ import annotations

import logging

import httpx
import msgspec
import pytest
import structlog
from systems.tests.authorities.support import order, view_of

from perdure.testing import Sandbox
from perdure_systems.authorities import jobs
from perdure_systems.authorities.settings import Authority, read_settings
from perdure_systems.authorities.standins import Reply, StandIns
from perdure_systems.authorities.system import SYSTEM
from perdure_systems.kit.web import api


def secrets_of(authority: Authority) -> list[str]:
    return [secret.reveal() for _, secret in read_settings(authority).headers]


@pytest.mark.parametrize("authority", [Authority.DIGICERT, Authority.SECTIGO, Authority.GLOBALSIGN])
async def test_no_secret_is_in_logs_errors_pages_or_arguments(
    authority: Authority,
    sqlite_box: Sandbox,
    standins: StandIns,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The authority repeats our headers in its errors: a pending one, then a final one, then one to a new order."""
    caplog.set_level(logging.DEBUG)
    standin, secrets = standins.of(authority), secrets_of(authority)
    standin.behaviour.echo_secrets = True
    standin.behaviour.replies.extend([Reply(503), Reply(403)])
    stop = jobs.app.log_events()
    with structlog.testing.capture_logs() as logged:
        first = await order(authority)
        await sqlite_box.drain()
        parked = await view_of(first)
        await sqlite_box.drain(travel=True)
        standin.behaviour.place = Reply(400)
        second = await order(authority)
        await sqlite_box.drain()
    stop()
    dead = [await view_of(one) for one in (first, second)]
    assert [view.state for view in dead] == ["dead", "dead"]
    assert [seen.headers for seen in standin.seen if all(secret in seen.headers.values() for secret in secrets)]
    said = [repr(logged), caplog.text, *capsys.readouterr()]
    said += [repr(msgspec.to_builtins(view)) for view in (parked, *dead)]
    desk = await jobs.app.desk("test")
    for one in (first, second):
        said.append(repr(await desk.job(one)))
        said.append(repr(await desk.audit(job=one)))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(api(SYSTEM.routes)), base_url="http://x.test") as client:
        paths = ("/", "/authorities", "/new", f"/orders/{first}", f"/orders/{second}", "/api/v1/orders")
        for path in (*paths, "/api/v1/authorities", f"/api/v1/orders/{first}"):
            answer = await client.get(path)
            assert answer.status_code == 200
            said.append(answer.text)
    assert "***" in (parked.reason or ""), "the stand-in has repeated nothing: this test would prove nothing"
    assert "answered 403 Forbidden" in (dead[0].last_error or "")
    for secret in secrets:
        assert [text for text in said if secret in text] == []
