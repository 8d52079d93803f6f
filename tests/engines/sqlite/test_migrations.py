"""The schema: the sum of its migrations, applied under the write lock, and looked at without it."""

from __future__ import annotations

import asyncio
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import apsw
import pytest
from tests.support.builders.jobs import MINUTE, a_job, claim_some, employ, enqueue

from perdure.clock import ManualClock
from perdure.domain.gate import GateRequest, RateCheck
from perdure.engines.shared.database.instants import to_micros
from perdure.engines.shared.database.migrations import load_migrations
from perdure.engines.sqlite.store import SqliteStore
from perdure.errors import SchemaError
from perdure.policy.limits.gatekeeping import gatekeeper
from perdure.storage.records import JobFilter, Page

SCHEMA = files("perdure.engines.sqlite").joinpath("sql", "schema.sql")


async def test_schema_is_the_sum_of_its_migrations(sqlite: SqliteStore) -> None:
    """`sql/schema.sql` is what a newcomer reads. If this fails after a new migration, write the dump there."""
    assert await sqlite.schema_dump() == SCHEMA.read_text(encoding="utf-8")


async def test_migrate_of_a_current_database_takes_no_write_lock(sqlite: SqliteStore, path: str) -> None:
    writer = apsw.Connection(path)
    writer.execute("BEGIN IMMEDIATE")
    try:
        assert await asyncio.wait_for(sqlite.migrate(), 5) == []
        await asyncio.wait_for(sqlite.check_schema(), 5)
    finally:
        writer.close()


async def test_a_failed_migration_leaves_nothing_behind(path: str) -> None:
    """The file holds a table of that name already: the whole migration is undone, its history too."""
    stranger = apsw.Connection(path)
    stranger.execute("CREATE TABLE perdure_worker (theirs)")
    stranger.close()
    store = SqliteStore(path)
    await store.open()
    try:
        with pytest.raises(Exception, match="perdure_worker already exists"):
            await store.migrate()
        with pytest.raises(SchemaError, match="perdure migrate"):
            await store.check_schema()
    finally:
        await store.close()
    looker = apsw.Connection(path)
    assert looker.execute("SELECT name FROM sqlite_schema").fetchall() == [("perdure_worker",)]
    looker.close()


async def test_a_database_without_our_tables_says_what_to_do(path: str) -> None:
    store = SqliteStore(path)
    await store.open()
    try:
        with pytest.raises(SchemaError, match="run `perdure migrate`"):
            await store.insert([a_job()])
    finally:
        await store.close()


async def test_prefixes_keep_apps_in_one_file_apart(tmp_path: Path) -> None:
    path = str(tmp_path / "shared.db")
    ours, theirs = SqliteStore(path, prefix="ours_"), SqliteStore(path, prefix="theirs_")
    for store in (ours, theirs):
        await store.open()
        assert await store.migrate() == [each.name for each in load_migrations("perdure.engines.sqlite")]
    try:
        job_id = await enqueue(ours)
        assert [view.id for view in await ours.jobs(JobFilter(), Page())] == [job_id]
        assert await theirs.jobs(JobFilter(), Page()) == []
        assert "ours_" not in await theirs.schema_dump()
    finally:
        await ours.close()
        await theirs.close()


async def test_g8_starts_that_count_survive_their_move_to_the_row_of_their_key(
    path: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(path, clock=clock)
    await store.open()
    try:
        schema = cast("Any", store.migrate).__self__
        known = schema._known
        monkeypatch.setattr(schema, "_known", [each for each in known if each.number < 7])
        await store.migrate()
        before = to_micros(clock.now()) - 1_000_000
        writer = apsw.Connection(path)
        writer.execute("INSERT INTO perdure_gate VALUES ('api', 60000000, ?)", (before + 10**12,))
        writer.executemany(
            "INSERT INTO perdure_gate_start VALUES ('api', ?, ?, 1, ?)",
            [(before + at, job, before + 10**9) for at, job in ((0, "a"), (0, "b"), (5, "c"))],
        )
        writer.close()
        monkeypatch.setattr(schema, "_known", known)
        await store.migrate()
        await enqueue(store)
        await enqueue(store)
        claims = await claim_some(store, await employ(store))
        requests = [GateRequest(claim=claim, rates=(RateCheck("api", 4, MINUTE),)) for claim in claims]
        answers = await store.pass_gates(requests, gatekeeper(requests))
    finally:
        await store.close()
    assert [answer is None for answer in answers] == [True, False]


async def test_c11_what_was_spent_before_there_were_sums_counts_and_is_summed(
    path: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(path, clock=clock)
    await store.open()
    try:
        schema = cast("Any", store.migrate).__self__
        known = schema._known
        monkeypatch.setattr(schema, "_known", [each for each in known if each.number < 12])
        await store.migrate()
        writer = apsw.Connection(path)
        writer.execute(
            "INSERT INTO perdure_spend (name, at, amount, job_id, is_estimate) VALUES ('ai', ?, 2.5, 'a', 0)",
            (to_micros(clock.now()),),
        )
        writer.close()
        monkeypatch.setattr(schema, "_known", known)
        await store.migrate()
        for summed in (1, 0):
            assert await store.spent("ai", clock.now() - MINUTE) == 2.5
            assert await store.sum_spends(10) == summed
    finally:
        await store.close()
