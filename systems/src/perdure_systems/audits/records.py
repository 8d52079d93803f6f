"""The tables of the audits: what each webhook's receiver was sent, and races of requests. All else is in the jobs."""

from __future__ import annotations

import uuid
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from perdure_systems.kit.database import Database
from perdure_systems.kit.group_commit import GroupCommit

MIGRATIONS: Final = Path(__file__).parent / "migrations"
_LOST: Final = """
    UPDATE audit_delivery SET status = 'unknown', error = 'the attempt ended before the answer came'
    WHERE webhook_id = :webhook_id AND token < :token AND status = 'sending'
"""
_BEGIN: Final = """
    INSERT INTO audit_delivery (webhook_id, token, audit_id, url, attempt, status, sent_at)
    VALUES (:webhook_id, :token, :audit_id, :url, :attempt, :status, :sent_at)
    ON CONFLICT (webhook_id, token) DO NOTHING
"""
_END: Final = """
    UPDATE audit_delivery SET status = :status, status_code = :status_code, seconds = :seconds, error = :error
    WHERE webhook_id = :webhook_id AND token = :token
"""


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """One request to the receiver of a webhook.

    `status` is `sending` until the answer is known, then `delivered` or `failed`; `unknown` if the attempt ended first.
    """

    webhook_id: str
    token: int
    audit_id: str
    url: str
    attempt: int
    status: str
    sent_at: datetime
    status_code: int | None = None
    seconds: float | None = None
    error: str | None = None


class Records:
    """The deliveries and the races."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._writes = GroupCommit(database)

    async def begin_delivery(self, delivery: Delivery) -> None:
        """Record a request before it is sent. One of an earlier claim without an answer will never have one."""
        parameters = msgspec.structs.asdict(delivery)
        await self._writes.execute((_LOST, parameters), (_BEGIN, parameters))

    async def end_delivery(self, delivery: Delivery) -> None:
        """Record what became of it."""
        await self._writes.execute((_END, msgspec.structs.asdict(delivery)))

    async def deliveries(self, *, webhook_id: str | None = None, audit_id: str | None = None) -> list[Delivery]:
        """The requests of one webhook, or of all webhooks of an audit, oldest first."""
        column, value = ("webhook_id", webhook_id) if webhook_id is not None else ("audit_id", audit_id)
        sql = f"SELECT * FROM audit_delivery WHERE {column} = :value ORDER BY sent_at, token"
        return await self.database.all(Delivery, sql, {"value": value})

    async def prune(self, before: datetime) -> int:
        """Delete deliveries and races from before this time; returns the number of deliveries."""
        async with self.database.transaction() as session:
            gone = await session.rows(
                "DELETE FROM audit_delivery WHERE sent_at < :before RETURNING token", {"before": before}
            )
            await session.execute("DELETE FROM audit_race WHERE raced_at < :before", {"before": before})
        return len(gone)

    async def count_race(self, audit_id: str, url: str, strategy: str, at: datetime) -> None:
        """Count a request that ran at the same time as another one."""
        await self.database.execute(
            "INSERT INTO audit_race (id, audit_id, url, strategy, raced_at)"
            " VALUES (:id, :audit_id, :url, :strategy, :at)",
            {"id": str(uuid.uuid4()), "audit_id": audit_id, "url": url, "strategy": strategy, "at": at},
        )

    async def races(self) -> int:
        """How many races there were."""
        async with self.database.snapshot() as session:
            [row] = await session.rows("SELECT count(*) AS races FROM audit_race")
        return int(row["races"])
