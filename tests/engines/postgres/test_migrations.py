"""The schema is the sum of its migrations, and only who may change it changes it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.engines.postgres.conftest import Ask
from tests.support.builders.jobs import HOUR, a_job, claim_one, claim_some, employ, enqueue
from tests.support.databases.behind import with_option

from perdure.domain.gate import GateRequest, RateCheck
from perdure.engines.postgres.store import PostgresStore
from perdure.engines.shared.database.migrations import load_migrations
from perdure.errors import SchemaError, SettingsError, StoreRefused
from perdure.policy.limits.gatekeeping import gatekeeper

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


async def test_a_role_that_may_not_create_gets_an_error_with_the_grant(
    postgres_url: str, schema: str, ask: Ask
) -> None:
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
        [[newest]] = ask("SELECT last_value FROM claim_token")
        assert newest < 2**40, "without the right to it, tokens are not brought up to the clock"
        ask(f'GRANT UPDATE ON SEQUENCE claim_token TO "{role}"')
        await store.insert([a_job()])
        assert (await claim_one(store, await employ(store))).token > 2**60
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


async def test_g8_starts_that_count_survive_their_move_to_rows_for_each_instant(
    postgres_url: str, schema: str, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PostgresStore(postgres_url, schema=schema)
    await store.open()
    try:
        known = store._schema._known
        monkeypatch.setattr(store._schema, "_known", [each for each in known if each.number < 7])
        await store.migrate()
        ask("INSERT INTO gate VALUES ('rate:api', interval '1 hour', now() + interval '1 day')")
        ask(
            "INSERT INTO gate_start SELECT 'api', now() - n / 2 * interval '1 s', gen_random_uuid(), n,"
            " now() + interval '1 hour' FROM generate_series(1, 3) n"
        )
        monkeypatch.setattr(store._schema, "_known", known)
        await store.migrate()
        assert ask("SELECT number, total FROM gate_begun ORDER BY at") == [(2, 2), (1, 3)]
        await enqueue(store)
        await enqueue(store)
        claims = await claim_some(store, await employ(store))
        requests = [GateRequest(claim=claim, rates=(RateCheck("api", 4, HOUR),)) for claim in claims]
        answers = await store.pass_gates(requests, gatekeeper(requests))
    finally:
        await store.close()
    assert [answer is None for answer in answers] == [True, False]


async def test_starts_that_count_no_more_are_swept_along_their_keys(pg_store: PostgresStore, ask: Ask) -> None:
    ask(
        "INSERT INTO gate_begun SELECT 'k' || n % 5, now() - n * interval '1 s', 1, n,"
        " now() + (n % 2 * 2 - 1) * interval '1 hour' FROM generate_series(1, 20) n"
    )
    assert [await pg_store.forget_gates(8) for _ in range(3)] == [4, 4, 2]
    assert ask("SELECT count(*), bool_and(until > now()) FROM gate_begun") == [(10, True)]
    assert await pg_store.forget_gates(8) == 0


async def test_c11_what_was_spent_before_there_were_sums_counts_and_is_summed(
    postgres_url: str, schema: str, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PostgresStore(postgres_url, schema=schema)
    await store.open()
    try:
        known = store._schema._known
        monkeypatch.setattr(store._schema, "_known", [each for each in known if each.number < 12])
        await store.migrate()
        ask(
            "INSERT INTO spend (name, at, amount, job_id, is_estimate)"
            " VALUES ('ai', now(), 2.5, gen_random_uuid(), false)"
        )
        monkeypatch.setattr(store._schema, "_known", known)
        await store.migrate()
        for summed in (1, 0):
            assert await store.spent("ai", await store.now() - HOUR) == 2.5
            assert await store.sum_spends(10) == summed
    finally:
        await store.close()
