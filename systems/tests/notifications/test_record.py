"""The job is the record: no table of our own, and an index that forgets what is dead."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import apsw
import httpx
import psycopg

from perdure import App
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.sessions import Terms
from perdure.engines.shared.database.placeholders import numbered
from perdure.testing import Sandbox
from perdure_systems.notifications.jobs import notify
from perdure_systems.notifications.records import notification_of


async def test_a1_migrating_twice_is_harmless_and_keeps_what_is_there(empty_url: str) -> None:
    app = App(empty_url, migrate=False)

    @app.job(name="notifications.notify", queue="notifications")
    async def stored(channel: str, subject: str, body: str) -> None: ...

    try:
        assert await app.migrate() != []
        handle = await stored.enqueue(channel="slack", subject="s", body="b")
        assert await app.migrate() == []
        kept = notification_of(await handle.view())
    finally:
        await app.close()
    assert (kept.channel, kept.subject, kept.status) == ("slack", "s", "pending")


async def test_a1_a_new_notification_starts_with_no_retry_no_time_and_no_error(
    box: Sandbox, client: httpx.AsyncClient
) -> None:
    new = {"channel": "slack", "subject": "s", "body": "b"}
    made = (await client.post("/api/v1/notifications", json=new)).json()
    shown = (await client.get(f"/api/v1/notifications/{made['id']}")).json()
    assert (shown["retry_count"], shown["next_retry_at"], shown["last_error"]) == (0, None, None)
    assert made == shown


async def test_a2_the_sweep_for_due_retries_reads_an_index_that_forgets_dead_ones(
    box: Sandbox, refuse: Callable[..., None], engine_url: str
) -> None:
    """Of 30 dead ones and one that waits for its retry the index holds one, and both statements of a sweep read it."""
    refuse(-1)
    for _ in range(30):
        await notify.enqueue(channel="slack", subject="dead", body="b")
    await box.drain(travel=True, limit=10_000, concurrency=10)
    await notify.enqueue(channel="slack", subject="failed", body="b")
    await box.drain()
    assert len(await box.dead()) == 30

    look = plans_on_sqlite if engine_url.startswith("sqlite:") else plans_on_postgres
    for plan in await look(box, engine_url):
        assert re.search(r"parked_due(_at_idx)?\b", plan), plan
        assert not re.search(r"SCAN perdure_(parked|finished|job)\b|Seq Scan on (parked|finished|job)\b", plan), plan
        assert not re.search(r"TEMP B-TREE|Sort Key: (p\.|parked\.)?due_at", plan), (
            plan
        )  # the index itself gives the oldest first


async def plans_on_sqlite(box: Sandbox, url: str) -> list[str]:
    """The plans of what finds late retries and of what makes due ones ready; checks what their index holds."""
    store: Any = await box.app.store()
    statements = store._database.statements("fleet/upkeep.sql")
    connection = apsw.Connection(url.removeprefix("sqlite:///"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        [(definition,)] = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'perdure_parked_due'")
        assert "WHERE due_at IS NOT NULL" in definition
        counted = "SELECT count(*) FROM perdure_parked INDEXED BY perdure_parked_due WHERE due_at IS NOT NULL"
        assert list(connection.execute(counted)) == [(1,)]
        return [
            "\n".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", names_in(sql)))
            for sql in (statements["overdue"], statements["due"])
        ]
    finally:
        connection.close()


async def plans_on_postgres(box: Sandbox, url: str) -> list[str]:
    """The same, with the settings of the engine's own sessions."""
    del box
    statements = Naming("perdure").statements("fleet/upkeep.sql")
    with psycopg.connect(url.partition("schema=")[0].rstrip("?&"), autocommit=True) as connection:
        [(definition,)] = connection.execute(
            "SELECT indexdef FROM pg_indexes WHERE schemaname = 'perdure' AND indexname = 'parked_due_at_idx'"
        ).fetchall()
        assert "WHERE (due_at IS NOT NULL)" in definition
        assert connection.execute("SELECT count(*) FROM perdure.parked WHERE due_at IS NOT NULL").fetchall() == [(1,)]
        connection.execute(Terms().for_session(None).encode())
        return [
            "\n".join(
                line for (line,) in connection.execute(f"EXPLAIN (GENERIC_PLAN, COSTS OFF) {numbered(sql)[0]}".encode())
            )
            for sql in (statements["overdue"], statements["promote"])
        ]


def names_in(sql: str) -> dict[str, None]:
    return dict.fromkeys(re.findall(r"(?<!:):([a-z_]+)", re.sub(r"'[^']*'|--.*", "", sql)))
