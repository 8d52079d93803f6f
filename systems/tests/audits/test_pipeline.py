"""E3, E6, E8: the steps of an audit, what is kept of them, how failures are retried, and how long a step may take."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest
from systems.tests.engines import on_sqlite

from perdure import Handle, current_context
from perdure.testing import Sandbox
from perdure_systems.audits import settings as audit_settings
from perdure_systems.audits.jobs import app, audit
from perdure_systems.audits.results import PageSpeed, Size
from perdure_systems.audits.standins import Outside, QuickInstruments
from perdure_systems.audits.web.actions import retry_audit
from perdure_systems.audits.web.views import AuditView, audit_view

Setting = Callable[[str, str], None]


class Curious(QuickInstruments):
    """Looks at the audit from outside when each part is used."""

    def __init__(self) -> None:
        super().__init__()
        self.audit: Handle[PageSpeed] | None = None
        self.seen: dict[str, AuditView] = {}

    async def look(self, name: str) -> None:
        assert self.audit is not None
        self.seen[name] = await audit_view(self.audit.id)

    async def photograph(self, url: str, size: Size) -> bytes:
        await self.look(size)
        return await super().photograph(url, size)

    async def print_pdf(self, html: str, footer: str) -> bytes:
        await self.look("pdf")
        return await super().print_pdf(html, footer)


def steps(view: AuditView) -> dict[str, str]:
    return {step.name: step.status for step in view.processing_steps}


async def test_e3_the_data_of_each_step_is_saved_with_status_and_time_before_the_next_begins(
    box: Sandbox, outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    curious = Curious()
    monkeypatch.setattr("perdure_systems.audits.pipeline.instruments._used", curious)
    outside.receiver.failures = 1
    curious.audit = await audit.enqueue(outside.page)
    await box.drain()

    at_screenshots, at_pdf = curious.seen["desktop"], curious.seen["pdf"]
    assert steps(at_screenshots) == {
        "pagespeed": "completed", "screenshots": "processing", "pdf": "pending", "webhook": "pending",
    }  # fmt: skip
    assert at_screenshots.pagespeed_data is not None
    assert at_screenshots.pagespeed_data.scores["performance"] == 71
    assert at_screenshots.processing_steps[0].saved_at == box.now
    assert at_screenshots.screenshots_data is None
    assert steps(at_pdf) == {
        "pagespeed": "completed", "screenshots": "completed", "pdf": "processing", "webhook": "pending",
    }  # fmt: skip
    assert at_pdf.screenshots_data is not None
    assert set(at_pdf.screenshots_data.taken) == {"desktop", "mobile"}
    assert at_pdf.report is None

    after = await audit_view(curious.audit.id)
    assert set(steps(after).values()) == {"completed"}
    assert (after.status, after.report is not None, after.webhooks[0].status) == ("completed", True, "retrying")


async def test_e3_what_was_fetched_is_never_fetched_again_however_often_the_job_fails_later(
    box: Sandbox, outside: Outside, quick: QuickInstruments
) -> None:
    """Three attempts, death, a new life by hand, three more, another life: one request to the API."""
    quick.broken["pdf"] = OSError("no space left")
    began = box.now
    handle = await audit.enqueue(outside.page)
    await box.drain(travel=True)
    view = await audit_view(handle.id)
    assert (view.status, view.attempts, quick.used["pdf"]) == ("failed", 3, 3)
    assert view.last_attempt_at == began + timedelta(seconds=90), "the attempts begin after 0, 30 and 90 seconds"
    assert steps(view)["pdf"] == "failed"
    assert view.error == "OSError: no space left"

    await retry_audit(handle.id, "test")
    await box.drain(travel=True)
    assert quick.used["pdf"] == 6

    quick.broken.clear()
    await retry_audit(handle.id, "test")
    await box.drain(travel=True)
    assert (await audit_view(handle.id)).status == "completed"
    assert outside.calls["pagespeed"] == 1
    assert (quick.used["desktop"], quick.used["mobile"]) == (1, 1)
    assert len(outside.received) == 1


async def test_e6_an_audit_has_three_attempts_after_30_and_60_seconds_read_when_used(
    box: Sandbox, outside: Outside, quick: QuickInstruments, settings: Setting
) -> None:
    outside.pagespeed.status = 500
    first = await audit.enqueue(outside.page)
    waits = []
    for _ in range(2):
        await box.drain()
        due = (await box.job(first)).due_at
        assert due is not None
        waits.append((due - box.now).total_seconds())
        box.travel_to(due)
    await box.drain()
    assert waits == [30, 60]
    assert ((await box.job(first)).state, outside.calls["pagespeed"]) == ("dead", 3)

    second = await audit.enqueue(f"{outside.page}second")
    await box.drain()
    settings("AUDITS_JOB_BACKOFF_BASE", "7")  # holds from the next failure on, without a restart
    settings("AUDITS_JOB_MAX_ATTEMPTS", "4")
    box.travel("30s")
    await box.drain()
    due = (await box.job(second)).due_at
    assert due is not None
    assert (due - box.now).total_seconds() == 14
    began = box.now
    await box.drain(travel=True)
    assert ((await box.job(second)).failures, box.now - began) == (4, timedelta(seconds=14 + 28))


def test_e8_the_limits_of_the_steps() -> None:
    limits = {name: limit.total_seconds() for name, limit in audit_settings.LIMITS.items()}
    assert limits == {"pagespeed": 90, "screenshots": 120, "pdf": 120, "webhook": 30}


@pytest.mark.parametrize(
    ("step", "state", "told"),
    [
        ("pagespeed", "retrying", "step pagespeed exceeded its time limit of 200ms"),
        ("screenshots", "succeeded", "step screenshots exceeded its time limit of 200ms"),
        ("pdf", "retrying", "step pdf exceeded its time limit of 200ms"),
    ],
)
@on_sqlite
async def test_e8_a_step_that_takes_longer_than_its_limit_is_stopped(
    box: Sandbox,
    quick: QuickInstruments,
    outside: Outside,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    state: str,
    told: str,
) -> None:
    monkeypatch.setitem(audit_settings.LIMITS, step, timedelta(seconds=0.2))
    parts = {"pagespeed": "measure", "screenshots": "desktop", "pdf": "pdf"}
    quick.slow[parts[step]] = 30
    handle = await audit.enqueue(outside.page)
    await box.drain()
    view = await box.job(handle)
    assert view.state == state
    assert told in f"{view.last_error} {view.warnings}"


@on_sqlite
async def test_a_page_that_the_api_refuses_is_not_tried_again_and_its_own_quota_costs_nothing(
    box: Sandbox, outside: Outside, quick: QuickInstruments
) -> None:
    outside.pagespeed.status = 400
    refused = await audit.enqueue(outside.page)
    await box.drain()
    view = await box.job(refused)
    assert (view.state, view.failures) == ("dead", 1)
    assert "the PageSpeed API refused" in (view.last_error or "")

    outside.pagespeed.status = 429
    waiting = await audit.enqueue(f"{outside.page}other")
    await box.drain()
    view = await box.job(waiting)
    assert (view.state, view.failures, view.due_at) == ("waiting", 0, box.now + timedelta(minutes=1))


@pytest.mark.parametrize("part", ["measure", "desktop", "pdf"])
@on_sqlite
async def test_what_breaks_because_the_worker_closes_costs_nothing_and_no_screenshot(
    box: Sandbox, outside: Outside, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The browser ends with the worker, under a step. The next worker goes on, and the report is complete."""

    class Closing(QuickInstruments):
        async def _use(self, name: str) -> None:
            if name == part and not self.used[name]:
                worker.stop()
                while not current_context().closing:  # type: ignore[union-attr]
                    await asyncio.sleep(0.01)
                self.broken[name] = ConnectionError("the browser is gone")
            await super()._use(name)

    instruments = Closing()
    monkeypatch.setattr("perdure_systems.audits.pipeline.instruments._used", instruments)
    handle = await audit.enqueue(outside.page)
    worker = await app.worker()
    await asyncio.wait_for(worker.run(), 20)
    view = await box.job(handle)
    assert (view.word, view.failures) == ("pending", 0)

    instruments.broken.clear()
    await box.drain()
    shown = await audit_view(handle.id)
    assert (shown.status, shown.warnings, outside.calls["pagespeed"]) == ("completed", [], 1)
    assert outside.received[0].json()["screenshots"] == ["desktop", "mobile"]
