"""What pulse keeps beside its jobs: documents, their pieces, what came out of them, and the limits in force."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from typing import Final

import msgspec

from perdure_systems.kit.database import Database, Session
from perdure_systems.kit.rows import as_json
from perdure_systems.pulse.limits import Limits, limits_of
from perdure_systems.pulse.settings import read_settings

_MINUTE: Final = timedelta(minutes=1)


class DocumentRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A document as it was handed in."""

    id: str
    job_id: str
    source: str
    handler: str
    title: str
    body: str
    submitted_at: datetime


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a document, and what the model wants for it."""

    document: str
    number: int
    body: str
    estimated: float
    actual: float | None = None


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What came out of a document."""

    document: str
    summary: str
    topics: list[str]
    chunks: int
    failed: int
    cost: float
    finished_at: datetime


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """How many pieces a document has and what they cost: as estimated, and as paid for those that were answered."""

    document: str
    pieces: int
    answered: int
    estimated: float
    actual: float


class Records:
    """The tables of pulse."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def add_document(self, session: Session, document: DocumentRecord) -> None:
        """Keep a document for its job."""
        await session.execute(
            "INSERT INTO pulse_document (id, job_id, source, handler, title, body, submitted_at)"
            " VALUES (:id, :job_id, :source, :handler, :title, :body, :submitted_at)",
            msgspec.structs.asdict(document),
        )

    async def document(self, document: str) -> DocumentRecord | None:
        """A document by its id."""
        return await self.database.one(DocumentRecord, "SELECT * FROM pulse_document WHERE id = :id", {"id": document})

    async def keep_chunks(self, document: str, chunks: list[Chunk]) -> int:
        """Keep the pieces of a document unless some are kept already; how many there are, 0 if the document is gone."""
        known = {"document": document}
        async with self.database.transaction() as session:
            if not await session.rows("SELECT id FROM pulse_document WHERE id = :document", known):
                return 0
            rows = await session.rows("SELECT count(*) AS pieces FROM pulse_chunk WHERE document = :document", known)
            if rows[0]["pieces"]:
                return int(rows[0]["pieces"])
            for chunk in chunks:
                await session.execute(
                    "INSERT INTO pulse_chunk (document, number, body, estimated)"
                    " VALUES (:document, :number, :body, :estimated) ON CONFLICT (document, number) DO NOTHING",
                    {name: getattr(chunk, name) for name in ("document", "number", "body", "estimated")},
                )
            return len(chunks)

    async def chunk(self, document: str, number: int) -> Chunk | None:
        """One piece."""
        return await self.database.one(
            Chunk,
            "SELECT document, number, body, estimated, actual FROM pulse_chunk"
            " WHERE document = :document AND number = :number",
            {"document": document, "number": number},
        )

    async def pay(self, session: Session, document: str, number: int, cost: float, at: datetime) -> None:
        """Note what a piece has cost."""
        await session.execute(
            "UPDATE pulse_chunk SET actual = :cost, asked_at = :at WHERE document = :document AND number = :number",
            {"document": document, "number": number, "cost": cost, "at": at},
        )

    async def costs(self, documents: list[str]) -> dict[str, Cost]:
        """What these documents cost."""
        names = {f"d{number}": document for number, document in enumerate(documents)}
        if not names:
            return {}
        wanted = ", ".join(f":{name}" for name in names)
        found = await self.database.all(
            Cost,
            "SELECT document, count(*) AS pieces, count(actual) AS answered, sum(estimated) AS estimated,"
            f" coalesce(sum(actual), 0) AS actual FROM pulse_chunk WHERE document IN ({wanted}) GROUP BY document",
            names,
        )
        return {cost.document: cost for cost in found}

    async def calls_since(self, since: datetime) -> int:
        """How often the model has answered since then."""
        async with self.database.snapshot() as session:
            rows = await session.rows("SELECT count(*) AS calls FROM pulse_chunk WHERE asked_at > :at", {"at": since})
        return int(rows[0]["calls"])

    async def keep_result(self, session: Session, result: Result) -> None:
        """Keep what came out of a document, in place of what came out before."""
        await session.execute("DELETE FROM pulse_result WHERE document = :document", {"document": result.document})
        await session.execute(
            "INSERT INTO pulse_result (document, summary, topics, chunks, failed, cost, finished_at)"
            " VALUES (:document, :summary, :topics, :chunks, :failed, :cost, :finished_at)",
            {**msgspec.structs.asdict(result), "topics": as_json(result.topics)},
        )

    async def result(self, document: str) -> Result | None:
        """What came out of a document."""
        return await self.database.one(
            Result, "SELECT * FROM pulse_result WHERE document = :document", {"document": document}
        )

    async def forget(self, document: str) -> None:
        """Forget a document with its pieces and its result."""
        await self.database.execute("DELETE FROM pulse_document WHERE id = :id", {"id": document})

    async def limits(self) -> Limits:
        """The limits in force: what an operator has set, else what the environment says."""
        async with self.database.snapshot() as session:
            rows = await session.rows("SELECT name, value FROM pulse_limit")
        limits = limits_of(read_settings())
        for row in rows:
            limits = with_limit(limits, row["name"], row["value"])
        return limits

    async def set_limit(self, name: str, value: float, by: str, at: datetime) -> None:
        """Set a limit over what the environment says; amounts of 0 mean no limit."""
        await self.database.execute(
            "INSERT INTO pulse_limit (name, value, set_by, set_at) VALUES (:name, :value, :by, :at)"
            " ON CONFLICT (name) DO UPDATE"
            " SET value = excluded.value, set_by = excluded.set_by, set_at = excluded.set_at",
            {"name": name, "value": value, "by": by, "at": at},
        )


def with_limit(limits: Limits, name: str, value: float) -> Limits:
    """The limits with another value for one of them."""
    if name == "calls_per_minute":
        return msgspec.structs.replace(limits, calls_per_minute=int(value))
    if name == "pause_on_budget":
        return msgspec.structs.replace(limits, pause_on_budget=bool(value))
    return msgspec.structs.replace(limits, **{name: value or None})


def new_document_id() -> str:
    """An id for a document."""
    return f"DOC_{secrets.token_hex(8)}"
