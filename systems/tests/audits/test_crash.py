"""E3: what was fetched outlives the process that fetched it."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from perdure.testing import Sandbox
from perdure_systems.audits.jobs import audit
from perdure_systems.audits.standins import Outside
from perdure_systems.audits.views import audit_view

AUDITOR = Path(__file__).with_name("auditor.py")


async def test_e3_a_process_that_is_killed_while_it_prints_leaves_what_it_has_fetched(
    engine_url: str, box: Sandbox, outside: Outside
) -> None:
    handle = await audit.enqueue(outside.page)
    first = await _auditor(engine_url, "hang")
    try:
        assert first.stdout is not None
        async with asyncio.timeout(30):
            while (line := await first.stdout.readline()).strip() != b"printing":
                assert line, "the process ended"
    finally:
        first.kill()
        await first.wait()
    view = await audit_view(handle.id)
    assert view.pagespeed_data is not None
    assert view.screenshots_data is not None

    second = await _auditor(engine_url)
    try:
        async with asyncio.timeout(30):
            while not outside.received:
                assert second.returncode is None
                await asyncio.sleep(0.1)
    finally:
        second.terminate()
        await second.wait()
    assert outside.calls["pagespeed"] == 1
    assert outside.received[0].json()["auditId"] == handle.id
    after = await audit_view(handle.id)
    assert (after.status, after.attempts, len(outside.received)) == ("completed", 1, 1)
    assert [one.status for one in after.webhooks[0].deliveries] == ["delivered"]


async def _auditor(url: str, *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        AUDITOR,
        *arguments,
        env={**os.environ, "PERDURE_URL": url},
        stdout=asyncio.subprocess.PIPE,
    )
