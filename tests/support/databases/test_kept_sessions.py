"""A store begins with a session that an earlier one has ended, and finds nothing of that one in it."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
from tests.support.databases.databases import PostgresDatabase

from perdure.engines.postgres.database.connections import Pool, Server
from perdure.engines.postgres.database.sessions import Terms

SESSION = "SELECT pg_backend_pid()"


def ask(address: str, *statements: str) -> Any:
    """What the last statement answers, on the first session of a pool of its own, which is closed then."""

    async def run() -> Any:
        pool = Pool(Server(address))
        pool.open()
        try:
            for statement in statements:
                rows = await pool.rows(statement)
        finally:
            await pool.close()
        return rows[0][0]

    return asyncio.run(run())


def test_a_session_is_used_again_and_keeps_no_setting_lock_or_table(postgres_database: PostgresDatabase) -> None:
    with postgres_database.lent() as address:
        first = ask(
            address,
            "SET work_mem = '77MB'",
            "SELECT pg_advisory_lock(7)",
            "CREATE TEMP TABLE note (text text)",
            "LISTEN news",
            SESSION,
        )
        assert ask(address, SESSION) == first
        assert ask(address, "SELECT current_setting('work_mem')") == "4MB"
        assert ask(address, f"SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = {first}") == 0
        assert ask(address, "SELECT to_regclass('pg_temp.note')::text") is None
        assert ask(address, "SELECT count(*) FROM pg_listening_channels()") == 0
    with postgres_database.lent() as again:
        assert again != address or ask(again, SESSION) == first


def test_a_session_in_a_transaction_is_not_used_again(postgres_database: PostgresDatabase) -> None:
    with postgres_database.lent() as address:

        async def leave() -> int:
            wire = await Server(address).wire(Terms(), prepare=True)
            await wire.fetch("BEGIN")
            [[session]] = await wire.fetch(SESSION)
            wire.drop()
            return int(session)

        left = asyncio.run(leave())
        assert ask(address, SESSION) != left


def test_a_session_that_was_ended_is_not_used_again(postgres_database: PostgresDatabase) -> None:
    with postgres_database.lent() as address:
        first = ask(address, SESSION)
        with psycopg.connect(address) as other:
            other.execute("SELECT pg_terminate_backend(%s)", [first])
        assert ask(address, SESSION) != first


def test_sessions_with_options_of_their_own_are_neither_taken_from_others_nor_left_to_them(
    postgres_database: PostgresDatabase,
) -> None:
    with postgres_database.lent() as address:
        reading = f"{address}&options=-c%20default_transaction_read_only%3Don"
        setting = "SELECT current_setting('default_transaction_read_only')"
        assert [ask(url, setting) for url in (address, reading, address)] == ["off", "on", "off"]
