"""The schema is the sum of its migrations, and only who may change it changes it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.engines.postgres.conftest import Ask
from tests.support.behind import with_option
from tests.support.jobs import a_job, claim_one, employ

from perdure.engines.migrations import load_migrations
from perdure.engines.postgres.store import PostgresStore
from perdure.errors import SchemaError, SettingsError, StoreRefused

GOLDEN = Path(__file__).with_name("schema.txt")


async def test_the_schema_is_the_sum_of_its_migrations(pg_store: PostgresStore) -> None:
    """`schema.txt` shows the whole of it; a migration changes that file in the same commit."""
    assert await pg_store.schema_dump() == GOLDEN.read_text().splitlines()


async def test_a_prefix_changes_names_and_nothing_else(postgres_url: str, schema: str) -> None:
    store = PostgresStore(postgres_url, schema=schema, prefix="app_")
    await store.open()
    try:
        await store.migrate()
        assert await store.schema_dump() == GOLDEN.read_text().splitlines()
    finally:
        await store.close()


async def test_two_apps_with_prefixes_share_a_schema_and_no_jobs(pg_store: PostgresStore, postgres_url: str) -> None:
    other = PostgresStore(postgres_url, schema=pg_store.naming.schema, prefix="b_")
    await other.open()
    try:
        assert await other.migrate() == [each.name for each in load_migrations("perdure.engines.postgres")]
        await other.insert([a_job()])
        assert await pg_store.counts() == []
        assert (await claim_one(other, await employ(other))).queue == "default"
    finally:
        await other.close()


async def test_migrating_again_writes_nothing(pg_store: PostgresStore, ask: Ask) -> None:
    before = ask("SELECT xmin, * FROM migration")
    assert await pg_store.migrate() == []
    assert ask("SELECT xmin, * FROM migration") == before


async def test_a_failed_migration_leaves_nothing_behind(postgres_url: str, schema: str, ask: Ask) -> None:
    ask(f'CREATE SCHEMA "{schema}"')
    ask("CREATE TABLE lease (something_else int)")
    store = PostgresStore(postgres_url, schema=schema)
    await store.open()
    try:
        with pytest.raises(Exception, match="already exists"):
            await store.migrate()
        assert ask("SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace", schema) == [("lease",)]
    finally:
        await store.close()


async def test_who_may_not_create_is_told_what_to_grant(postgres_url: str, schema: str, ask: Ask) -> None:
    role = f"r_{schema}"
    ask(f'CREATE ROLE "{role}" LOGIN')
    try:
        store = PostgresStore(_as_user(postgres_url, role), schema=schema)
        await store.open()
        try:
            with pytest.raises(StoreRefused, match="lacks rights"):
                await store.migrate()
            with pytest.raises(SchemaError, match="perdure migrate"):
                await store.check_schema()
            with pytest.raises(SchemaError, match="perdure migrate"):
                await store.insert([a_job()])
        finally:
            await store.close()
    finally:
        ask(f'DROP ROLE "{role}"')


async def test_a_user_with_rights_on_the_tables_alone_can_work(
    pg_store: PostgresStore, postgres_url: str, schema: str, ask: Ask
) -> None:
    """The owner migrates; the app's own user needs no more than the tables and sequences."""
    role = f"r_{schema}"
    ask(f'CREATE ROLE "{role}" LOGIN')
    ask(f'GRANT USAGE ON SCHEMA "{schema}" TO "{role}"')
    ask(f'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "{schema}" TO "{role}"')
    ask(f'GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA "{schema}" TO "{role}"')
    store = PostgresStore(_as_user(postgres_url, role), schema=schema)
    await store.open()
    try:
        assert await store.migrate() == []
        await store.insert([a_job()])
        assert await claim_one(store, await employ(store))
    finally:
        await store.close()
        ask(f'DROP OWNED BY "{role}"')
        ask(f'DROP ROLE "{role}"')


@pytest.mark.parametrize("name", ["Upper", "semi;colon", 'quo"te', "", "x" * 32, "1st"])
def test_names_that_are_not_plain_are_refused(name: str) -> None:
    with pytest.raises(SettingsError, match="schema"):
        PostgresStore("postgresql://localhost/x", schema=name)


def _as_user(url: str, role: str) -> str:
    return with_option(url, "user", role)
