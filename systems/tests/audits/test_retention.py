"""E5, E7: failed audits are kept for a while, retried by hand and logged; migrations only add."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from perdure import App, ConflictError, NotFoundError
from perdure.testing import Sandbox
from perdure_systems.audits import storage
from perdure_systems.audits.jobs import app, audit, records, report_failures
from perdure_systems.audits.records import MIGRATIONS, Delivery
from perdure_systems.audits.standins import Outside, QuickInstruments
from perdure_systems.audits.web.actions import retry_audit
from perdure_systems.audits.web.stats import stats
from perdure_systems.audits.web.views import audit_view
from perdure_systems.kit.database import Database

Setting = Callable[[str, str], None]


async def fail(box: Sandbox, quick: QuickInstruments, url: str) -> str:
    quick.broken["pdf"] = OSError("no space left")
    handle = await audit.enqueue(url)
    await box.drain(travel=True)
    quick.broken.clear()
    return handle.id


@pytest.mark.parametrize(
    ("engine_url", "days"), [("sqlite", 30), ("postgres", 30), ("sqlite", 7)], indirect=["engine_url"]
)
async def test_e5_failed_audits_are_kept_30_days_or_as_set_and_cleaned_up_by_a_schedule(
    box: Sandbox, outside: Outside, quick: QuickInstruments, settings: Setting, days: int
) -> None:
    if days != 30:
        settings("AUDITS_FAILED_JOBS_RETENTION_DAYS", str(days))
    failed = await fail(box, quick, outside.page)
    completed = (await audit.enqueue(f"{outside.page}other")).id
    await box.drain(travel="1h")

    await _pass_days(box, days - 1)
    assert (await audit_view(failed)).status == "failed"
    assert storage.load(failed, "desktop.jpg"), "the files of a failed audit are kept as well"
    await _pass_days(box, 2)
    with pytest.raises(NotFoundError, match="there is no audit"):
        await audit_view(failed)
    with pytest.raises(NotFoundError, match="not there any more"):
        storage.load(failed, "desktop.jpg")
    assert (await audit_view(completed)).status == "completed"
    assert storage.load(completed, "report.pdf")


async def _pass_days(box: Sandbox, days: int) -> None:
    """To the time of the clean-up so many days later; nothing calls it but its schedule."""
    box.travel_to((box.now + timedelta(days=days)).replace(hour=3, minute=30, second=0, microsecond=0))
    await box.drain()


async def test_e5_a_failed_audit_is_retried_by_hand_and_a_completed_one_is_not(
    box: Sandbox, outside: Outside, quick: QuickInstruments
) -> None:
    failed = await fail(box, quick, outside.page)
    await retry_audit(failed, "ada")
    await box.drain()
    view = await audit_view(failed)
    assert (view.status, view.error, view.attempts) == ("completed", None, 0)
    with pytest.raises(ConflictError, match="is completed: only failed jobs can be retried"):
        await retry_audit(failed, "ada")
    entries = (await (await app.desk("test")).audit(actor="ada")).entries
    assert [(entry.action, entry.job_id) for entry in entries] == [("requeue", failed)]


async def test_e5_a_failed_audit_is_logged_once_with_full_context(
    box: Sandbox, outside: Outside, quick: QuickInstruments
) -> None:
    with capture_logs() as logs:
        failed = await fail(box, quick, outside.page)
        await report_failures()
        await report_failures()
    [entry] = [log for log in logs if log["event"] == "audit failed"]
    assert entry["log_level"] == "error"
    assert (entry["id"], entry["kind"], entry["max_attempts"]) == (failed, "audits.audit", 3)
    assert entry["arguments"]["url"] == outside.page
    assert entry["last_error"] == "OSError: no space left"
    assert {"pagespeed", "screenshots"} <= set(entry["steps"])
    assert [(attempt["number"], attempt["message"]) for attempt in entry["attempts"]] == [
        (number, "no space left") for number in (1, 2, 3)
    ]
    assert "Traceback" in entry["traceback"]
    assert entry["created_at"]
    assert entry["finished_at"]


def test_e7_migrations_only_add() -> None:
    """No table, column or row goes, no column is renamed or tightened: the release before can still run."""
    allowed = re.compile(r"^(CREATE TABLE|CREATE (UNIQUE )?INDEX|ALTER TABLE \w+ ADD COLUMN(?!.*NOT NULL))")
    for file in sorted(MIGRATIONS.glob("*.sql")):
        lines = [line for line in file.read_text().splitlines() if not line.startswith("--")]
        for statement in filter(None, (part.strip() for part in "\n".join(lines).split(";"))):
            assert allowed.match(statement), f"{file.name}: {statement}"


async def test_e7_data_of_an_older_release_survives_and_its_writes_still_work(engine_url: str, tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.mkdir()
    first = next(iter(sorted(MIGRATIONS.glob("*.sql"))))
    (old / first.name).write_text(first.read_text())
    write = (
        "INSERT INTO audit_delivery (webhook_id, token, audit_id, url, attempt, status, sent_at)"
        " VALUES (:id, 1, 'a', 'http://x/', 1, 'delivered', :at)"
    )
    at = datetime(2026, 3, 1, tzinfo=UTC)
    mine = App(engine_url)
    before, after = Database(mine, "audits", old), Database(mine, "audits", MIGRATIONS)
    await before.execute(write, {"id": "old", "at": at})
    assert len(await after.migrate()) == len(list(MIGRATIONS.glob("*.sql"))) - 1
    await before.execute(write, {"id": "during the deploy", "at": at})
    found = await after.all(Delivery, "SELECT * FROM audit_delivery ORDER BY webhook_id DESC")
    assert [(one.webhook_id, one.sent_at, one.status_code) for one in found] == [
        ("old", at, None),
        ("during the deploy", at, None),
    ]
    await before.close()
    await after.close()


async def test_e7_ten_thousand_audits_are_counted_and_shown(box: Sandbox) -> None:
    """A day's worth waits at once; how fast they are worked off is measured by benchmarks/systems/audits.py."""
    await app.enqueue_many(audit.call(f"https://site-{number}.example/") for number in range(10_000))
    assert (await stats())["audits"]["pending"] == 10_000
    assert await records.races() == 0
