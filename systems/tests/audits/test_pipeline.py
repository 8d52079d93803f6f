"""E3: what a step has brought is kept before the next one begins, and never asked for again."""

from __future__ import annotations

from perdure.testing import Sandbox
from perdure_systems.audits.jobs import audit
from perdure_systems.audits.standins import Outside, QuickInstruments
from perdure_systems.audits.views import audit_view


async def test_first(box: Sandbox, outside: Outside, quick: QuickInstruments) -> None:
    handle = await audit.enqueue(outside.page)
    await box.drain()
    view = await audit_view(handle.id)
    assert view.status == "completed"
    assert len(outside.received) == 1
