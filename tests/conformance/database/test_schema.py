"""SchemaStore: migrations, and databases that this code must not touch."""

from __future__ import annotations

import asyncio
import re
import uuid

import pytest
from tests.support.builders.jobs import a_job, a_key, claim_some, employ, enqueue, show
from tests.support.crew import SIZE, Crew, Ready
from tests.support.databases.behind import query, with_option

from perdure.app.connect import store_for
from perdure.engines.shared.database.migrations import RELEASE
from perdure.errors import SchemaError
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page


async def test_migrate_shows_what_it_did_and_does_it_once(empty_url: str) -> None:
    store = store_for(empty_url)
    await store.open()
    applied = await store.migrate()
    assert applied
    assert all(re.fullmatch(r"\d{4}_\w+", name) for name in applied)
    assert await store.migrate() == []
    await store.check_schema()
    await store.close()


async def test_an_empty_database_is_refused_until_it_is_migrated(empty_url: str) -> None:
    store = store_for(empty_url)
    await store.open()
    with pytest.raises(SchemaError, match="perdure migrate"):
        await store.check_schema()
    await store.migrate()
    await store.check_schema()
    await store.close()


async def test_jobs_outlive_a_second_migrate_and_a_reopening(store: Store, engine_url: str) -> None:
    job_id = await enqueue(store)
    await store.migrate()
    await store.close()
    again = store_for(engine_url)
    await again.open()
    await again.check_schema()
    assert (await show(again, job_id)).id == job_id
    await again.close()


async def test_a_database_of_newer_code_is_refused(store: Store, engine_url: str) -> None:
    """All but that of the next release, which may share its database with us: see test_g10_neighbour_release."""
    query(engine_url, f"UPDATE {{migration}} SET release = {RELEASE + 2}")
    with pytest.raises(SchemaError, match=rf"release {RELEASE + 2}.*upgrade perdure"):
        await store.check_schema()
    with pytest.raises(SchemaError, match=rf"release {RELEASE + 2}.*upgrade perdure"):
        await store.migrate()


async def test_a_migration_changed_after_the_fact_is_refused(store: Store, engine_url: str) -> None:
    query(engine_url, "UPDATE {migration} SET checksum = 'forged'")
    with pytest.raises(SchemaError, match="applied with different content: restore"):
        await store.check_schema()
    with pytest.raises(SchemaError, match="applied with different content: restore"):
        await store.migrate()


def test_processes_that_migrate_at_once_apply_each_migration_once(empty_url: str, crew: Crew) -> None:
    applied = crew.together(migrate_here, [(empty_url,)] * SIZE)
    winners = [names for names in applied if names]
    assert len(winners) == 1
    [(recorded,)] = query(empty_url, "SELECT count(*) FROM {migration}")
    assert recorded == len(winners[0])


async def test_two_prefixes_in_one_database_do_not_see_each_other(empty_url: str) -> None:
    here, there = store_for(with_option(empty_url, "prefix", "a_")), store_for(with_option(empty_url, "prefix", "b_"))
    await keep_apart(here, there)


async def test_two_schemas_in_one_database_do_not_see_each_other(empty_url: str) -> None:
    if empty_url.startswith("sqlite"):
        pytest.skip("SQLite has no schemas: its apps use a prefix")
    neighbour = f"t_{uuid.uuid4().hex[:16]}"
    try:
        await keep_apart(store_for(empty_url), store_for(with_option(empty_url, "schema", neighbour)))
    finally:
        query(empty_url, f"DROP SCHEMA IF EXISTS {neighbour} CASCADE")


async def keep_apart(here: Store, there: Store) -> None:
    """Fill both with jobs of the same ids, keys and queues, and see each work alone."""
    for store in (here, there):
        await store.open()
        assert await store.migrate()
    job = a_job(unique=a_key())
    for store, args in ((here, '"here"'), (there, '"there"')):
        [receipt] = await store.insert([a_job(id=job.id, unique=job.unique, args=args)])
        assert receipt.intake == "new"
    [claim] = await claim_some(here, await employ(here))
    assert claim.args == '"here"'
    assert (await show(there, job.id)).state == "ready"
    assert await there.workers() == []
    assert len(await there.jobs(JobFilter(), Page())) == 1
    for store in (here, there):
        await store.close()


def migrate_here(ready: Ready, url: str) -> list[str]:
    """Open a store in this process and migrate."""

    async def migrate() -> list[str]:
        store = store_for(url)
        ready()
        await store.open()
        try:
            return await store.migrate()
        finally:
            await store.close()

    return asyncio.run(migrate())
