"""B1, B6, B7: what a schedule is, and how it ends."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import httpx
import pytest
from systems.tests.engines import on_sqlite
from tests.support.databases.behind import query

from perdure import App
from perdure.testing import Sandbox
from perdure_systems.flags.jobs import APPLY, app, database
from perdure_systems.flags.records import Change, Flag
from perdure_systems.flags.store import MIGRATIONS
from perdure_systems.kit.database import Database

from .conftest import MINUTE, NOON, Faults, Run, instant, make_flag, make_schedule, shown

B1_FIELDS = {
    *("flagKey", "updates", "scheduledAt", "status", "retryCount", "maxRetries", "nextRetryAt", "lastError"),
    *("appliedAt", "createdBy", "cancelledBy", "cancelledAt"),
}


async def flag(key: str) -> Flag:
    found = await database.one(Flag, "SELECT * FROM flag_flag WHERE key = :key", {"key": key})
    assert found is not None
    return found


async def changes_by(schedule_id: str) -> list[Change]:
    sql = "SELECT * FROM flag_change WHERE schedule_id = :id"
    return await database.all(Change, sql, {"id": schedule_id})


@on_sqlite
async def test_b1_a_new_schedule_has_all_fields_and_their_defaults(client: httpx.AsyncClient) -> None:
    schedule_id = await make_schedule(client, "dark-mode", NOON + MINUTE)
    seen = await shown(client, "dark-mode", schedule_id)
    assert seen.keys() >= B1_FIELDS
    assert seen["flagKey"] == "dark-mode"
    assert seen["updates"] == {"enabled": True}
    assert instant(seen["scheduledAt"]) == NOON + MINUTE
    assert (seen["status"], seen["retryCount"], seen["maxRetries"]) == ("pending", 0, 3)
    unset = ("nextRetryAt", "lastError", "appliedAt", "cancelledBy", "cancelledAt")
    assert [seen[name] for name in unset] == [None] * 5
    assert seen["createdBy"] == "ada"


async def test_b1_all_four_words_for_a_status_are_reported_and_understood(
    client: httpx.AsyncClient, box: Sandbox
) -> None:
    """By the API, and by the desk and the command line, which need none of this code."""
    ids = {key: await make_schedule(client, key, NOON + MINUTE) for key in ("on", "gone", "off")}
    later = await make_schedule(client, "later", NOON + 60 * MINUTE)
    await client.delete("/api/admin/flags/gone")
    await client.delete(f"/api/admin/flags/off/schedule/{ids['off']}")
    box.travel("1m")
    await box.drain()
    told = {key: (await shown(client, key, name))["status"] for key, name in [*ids.items(), ("later", later)]}
    assert told == {"on": "applied", "gone": "failed", "off": "cancelled", "later": "pending"}
    await app.store()
    async with App(app.url):
        pass
    desk = await app.desk("test")
    for key, word in told.items():
        found = (await desk.jobs(await desk.meaning(word, APPLY))).jobs
        assert [job.arguments["flag_key"] for job in found] == [key]


async def test_b1_due_times_of_retries_have_an_index(box: Sandbox, engine_url: str) -> None:
    """What the original calls an index on next_retry_at: the due times of parked jobs."""
    if engine_url.startswith("sqlite:"):
        indexes = query(engine_url, "SELECT sql FROM sqlite_master WHERE type = 'index' AND tbl_name = '{parked}'")
    else:
        indexes = query(engine_url, "SELECT indexdef FROM pg_indexes WHERE tablename = 'parked'")
    assert any("due_at" in (sql or "") for (sql,) in indexes)


async def test_b1_the_migration_can_run_before_the_code(engine_url: str) -> None:
    """Tables first, with nothing of this system running; then again; then schedules work in them."""
    early = App(engine_url)
    migrations = Database(early, "flags", MIGRATIONS)
    try:
        assert await migrations.migrate() == ["flags/0001_flags"]
        await early.migrate()
    finally:
        await migrations.close()
        await early.close()
    async with Sandbox(app, url=engine_url, start=NOON, periodic=False) as box:
        try:
            assert await database.migrate() == []
            await make_flag("dark-mode")
            assert (await flag("dark-mode")).version == 1
            assert (await box.drain()).attempts == 0
        finally:
            await database.close()


@on_sqlite
async def test_b6_at_the_limit_it_stays_failed_and_waits_for_an_operator(
    client: httpx.AsyncClient, box: Sandbox, faults: Faults, runs: list[Run]
) -> None:
    schedule_id = await make_schedule(client, "dark-mode", NOON + MINUTE)
    await faults.break_flag("dark-mode")
    await box.drain(travel="1d")
    assert len(runs) == 4
    seen = await shown(client, "dark-mode", schedule_id)
    assert (seen["status"], seen["nextRetryAt"], seen["needsOperator"]) == ("failed", None, True)
    assert seen["retryCount"] == seen["maxRetries"] == 3
    assert "the disk is broken" in seen["lastError"]
    await faults.mend()
    await box.drain(travel="30d")
    assert len(runs) == 4, "only an operator retries it"


@on_sqlite
async def test_b7_success_changes_the_flag_and_the_schedule(
    client: httpx.AsyncClient, box: Sandbox, faults: Faults
) -> None:
    schedule_id = await make_schedule(client, "dark-mode", NOON + MINUTE)
    await faults.break_flag("dark-mode")
    box.travel("1m")
    await box.drain()
    assert (await shown(client, "dark-mode", schedule_id))["nextRetryAt"] is not None
    await faults.mend()
    await box.drain(travel=True)
    seen = await shown(client, "dark-mode", schedule_id)
    assert (seen["status"], seen["nextRetryAt"]) == ("applied", None)
    assert instant(seen["appliedAt"]) == box.now
    assert ((await flag("dark-mode")).enabled, (await flag("dark-mode")).version) == (True, 2)


@pytest.mark.parametrize("broken", ["status", "flag"])
async def test_b7_flag_and_status_change_together_or_not_at_all(
    client: httpx.AsyncClient, box: Sandbox, faults: Faults, engine_url: str, broken: str
) -> None:
    """Whichever of the two writes the database refuses, neither is there; then both are."""
    schedule_id = await make_schedule(client, "dark-mode", NOON + MINUTE)
    if broken == "flag":
        await faults.break_flag("dark-mode")
    else:
        refuse_successes(engine_url)
    box.travel("1m")
    async with asyncio.timeout(20):  # a status that cannot be written by itself would be tried for ever
        drained = await box.drain()
    assert (drained.succeeded, drained.retrying) == (0, 1)
    assert ((await flag("dark-mode")).enabled, await changes_by(schedule_id)) == (False, [])
    assert (await shown(client, "dark-mode", schedule_id))["status"] == "failed"
    if broken == "flag":
        await faults.mend()
    else:
        allow_successes(engine_url)
    await box.drain(travel=True)
    assert ((await flag("dark-mode")).enabled, len(await changes_by(schedule_id))) == (True, 1)
    assert (await shown(client, "dark-mode", schedule_id))["status"] == "applied"


def refuse_successes(url: str) -> None:
    """The database refuses to record that a job has succeeded."""
    if url.startswith("sqlite:"):
        body = "WHEN NEW.state = 'succeeded' BEGIN SELECT RAISE(ABORT, 'no room'); END"
        query(url, f"CREATE TRIGGER no_success BEFORE INSERT ON {{finished}} {body}")
    else:
        query(url, "ALTER TABLE {finished} ADD CONSTRAINT no_success CHECK (state <> 'succeeded') NOT VALID")


def allow_successes(url: str) -> None:
    """It records them again."""
    if url.startswith("sqlite:"):
        query(url, "DROP TRIGGER no_success")
    else:
        query(url, "ALTER TABLE {finished} DROP CONSTRAINT no_success")


@on_sqlite
async def test_b7_a_double_application_would_be_seen(client: httpx.AsyncClient, box: Sandbox) -> None:
    """The record of changes has a row for each, so that the tests above can trust it."""
    schedule_id = await make_schedule(client, "dark-mode", NOON + MINUTE, updates={"rollout": 25})
    await box.drain(travel=timedelta(hours=1))
    [change] = await changes_by(schedule_id)
    assert (change.version, change.rollout, change.changed_by, change.action) == (2, 25, "ada", "changed")
