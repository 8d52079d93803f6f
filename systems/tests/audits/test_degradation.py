"""E4: an audit without its screenshots is still an audit, and says so truthfully."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from systems.tests.engines import on_sqlite

from perdure.testing import Sandbox
from perdure_systems.audits import storage
from perdure_systems.audits.jobs import audit
from perdure_systems.audits.settings import storage_folder
from perdure_systems.audits.standins import Outside, QuickInstruments
from perdure_systems.audits.web.views import audit_view

Setting = Callable[[str, str], None]
GONE = OSError("the browser is gone")


def step(view: Any, name: str) -> Any:
    return next(one for one in view.processing_steps if one.name == name)


@pytest.mark.parametrize(
    ("broken", "included", "error"),
    [
        ((), ["desktop", "mobile"], None),
        (("desktop",), ["mobile"], "desktop: OSError: the browser is gone"),
        (("mobile",), ["desktop"], "mobile: OSError: the browser is gone"),
        (("desktop", "mobile"), [], "desktop: OSError: the browser is gone; mobile: OSError: the browser is gone"),
    ],
    ids=["none", "desktop", "mobile", "both"],
)
@on_sqlite
async def test_e4_whichever_screenshot_fails_the_pdf_is_made_and_the_webhook_says_so(
    box: Sandbox,
    outside: Outside,
    quick: QuickInstruments,
    broken: tuple[str, ...],
    included: list[str],
    error: str | None,
) -> None:
    quick.broken |= dict.fromkeys(broken, GONE)
    handle = await audit.enqueue(outside.page)
    await box.drain()
    view = await audit_view(handle.id)

    assert view.status == "completed"
    assert storage.load(handle.id, "report.pdf").startswith(b"%PDF"), "the PDF is made"
    assert step(view, "screenshots").status == ("completed_with_warnings" if broken else "completed")
    assert step(view, "screenshots").note == error
    assert view.warnings == [f"no {size} screenshot: OSError: the browser is gone" for size in broken]
    [told] = outside.received
    assert told.json()["screenshotsIncluded"] is bool(included)
    assert told.json()["screenshots"] == included
    assert told.json()["screenshotError"] == error
    assert told.json()["status"] == ("completed_with_warnings" if broken else "completed")


@on_sqlite
async def test_e4_an_exception_in_the_step_itself_takes_only_the_screenshots(
    box: Sandbox, outside: Outside, quick: QuickInstruments, settings: Setting, tmp_path: Path
) -> None:
    """The folder for the pictures cannot be made; it can be when the report is printed."""
    blocked = tmp_path / "blocked"
    blocked.write_text("a file is in the way")
    settings("AUDITS_STORAGE_DIR", str(blocked))

    class Unblocking(QuickInstruments):
        async def print_pdf(self, html: str, footer: str) -> bytes:
            blocked.unlink(missing_ok=True)
            return await super().print_pdf(html, footer)

    quick.print_pdf = Unblocking().print_pdf  # type: ignore[method-assign]
    handle = await audit.enqueue(outside.page)
    await box.drain()
    view = await audit_view(handle.id)
    assert (view.status, step(view, "screenshots").status) == ("completed", "completed_with_warnings")
    assert storage.load(handle.id, "report.pdf").startswith(b"%PDF")
    assert view.warnings[0].startswith("step screenshots gave up: ")
    [told] = outside.received
    assert told.json()["screenshotsIncluded"] is False
    assert "Error: " in told.json()["screenshotError"]


@on_sqlite
async def test_e4_the_webhook_speaks_of_the_report_not_of_what_was_taken(
    box: Sandbox, outside: Outside, quick: QuickInstruments
) -> None:
    """Both pictures were taken, and one is gone from the disk when the report is printed, in a later attempt."""
    quick.broken["pdf"] = GONE
    handle = await audit.enqueue(outside.page)
    await box.drain()
    (storage_folder() / handle.id / "mobile.jpg").unlink()
    quick.broken.clear()
    await box.drain(travel=True)
    [told] = outside.received
    assert told.json()["screenshots"] == ["desktop"]
    assert told.json()["screenshotError"] == f"mobile: the file mobile.jpg of audit {handle.id} is not there any more"


@pytest.mark.parametrize("broken", [("mobile",), ("desktop", "mobile")])
@on_sqlite
async def test_e4_with_screenshots_required_the_audit_fails(
    box: Sandbox, outside: Outside, quick: QuickInstruments, settings: Setting, broken: tuple[str, ...]
) -> None:
    settings("AUDITS_REQUIRE_SCREENSHOTS", "true")
    quick.broken |= dict.fromkeys(broken, GONE)
    handle = await audit.enqueue(outside.page)
    await box.drain(travel=True)
    view = await audit_view(handle.id)
    assert (view.status, view.attempts, step(view, "screenshots").status) == ("failed", 3, "failed")
    assert view.error == "ScreenshotsFailed: " + "; ".join(f"{one}: OSError: the browser is gone" for one in broken)
    assert (view.report, view.webhooks, outside.received) == (None, [], [])
