"""E3: what was fetched outlives the process that fetched it."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from perdure.testing import Sandbox
from perdure_systems.audits.jobs import app, audit
from perdure_systems.audits.standins import Outside, QuickInstruments
from perdure_systems.audits.web.views import audit_view

AUDITOR = Path(__file__).with_name("auditor.py")
PATIENCE = 60  # seconds, on a machine that does much else


async def test_e3_a_process_that_is_killed_while_it_prints_leaves_what_it_has_fetched(
    engine_url: str, box: Sandbox, outside: Outside, quick: QuickInstruments
) -> None:
    handle = await audit.enqueue(outside.page)
    process = await asyncio.create_subprocess_exec(
        sys.executable, AUDITOR, env={**os.environ, "PERDURE_URL": engine_url}, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            while (line := await process.stdout.readline()).strip() != b"printing":
                assert line, "the process ended"
    finally:
        process.kill()
        await process.wait()
    view = await audit_view(handle.id)
    assert view.pagespeed_data is not None
    assert view.screenshots_data is not None

    worker = await app.worker()
    running = asyncio.create_task(worker.run())
    async with asyncio.timeout(PATIENCE):
        while not await _is_told(handle.id):
            box.travel("10s")  # the lease of the dead process ends sooner
            await asyncio.sleep(0.05)
    worker.stop()
    await running
    assert outside.calls["pagespeed"] == 1
    assert (quick.used["desktop"], quick.used["mobile"], quick.used["pdf"]) == (0, 0, 1)
    after = await audit_view(handle.id)
    assert (after.status, after.attempts) == ("completed", 1)
    assert [request.json()["auditId"] for request in outside.received] == [handle.id]
    assert [one.status for one in after.webhooks[0].deliveries] == ["delivered"]


async def _is_told(audit_id: str) -> bool:
    return [one.status for one in (await audit_view(audit_id)).webhooks] == ["delivered"]
