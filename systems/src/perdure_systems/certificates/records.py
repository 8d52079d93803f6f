"""The tables of this system: certificates, agents, what was found, how the loops did."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

from perdure_systems.certificates.signing import Signed
from perdure_systems.kit.database import Session
from perdure_systems.kit.rows import as_json

MIGRATIONS: Final = Path(__file__).parent / "migrations"
STATUSES: Final = ("requested", "active", "failed", "expired")


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """A name that shall always have a valid certificate. `status` is one of `STATUSES`."""

    id: str
    common_name: str
    sans: list[str]
    status: str
    owner: str
    requested_by: str
    lifetime_hours: int
    needs_csr: bool
    needs_approval: bool
    created_at: datetime
    job_id: str | None = None
    serial: str | None = None
    pem: str | None = None
    not_after: datetime | None = None
    renew_at: datetime | None = None


class Agent(msgspec.Struct, frozen=True):
    """A program that makes keys where they are used. `status` is online or offline."""

    id: str
    status: str
    last_seen_at: datetime


class Found(msgspec.Struct, frozen=True):
    """A certificate that a scan has found."""

    fingerprint: str
    source: str
    subject: str
    not_after: datetime


class LoopRun(msgspec.Struct, frozen=True):
    """When a loop last ran and what it did."""

    name: str
    ran_at: datetime
    did: str


class Endpoint(msgspec.Struct, frozen=True):
    """How an endpoint answered its last health check."""

    address: str
    status: str
    error: str | None
    checked_at: datetime


BY_ID: Final = "SELECT * FROM certificate WHERE id = :id"
ALL: Final = "SELECT * FROM certificate ORDER BY common_name"
PAGE: Final = (
    "SELECT * FROM certificate WHERE (:status = '' OR status = :status) ORDER BY common_name LIMIT :size OFFSET :skip"
)
# Lists that loops walk through, page by page: each begins behind the last id of the one before.
REQUESTED: Final = "SELECT * FROM certificate WHERE status = 'requested' AND id > :after ORDER BY id LIMIT 500"
DUE: Final = (
    "SELECT * FROM certificate WHERE status IN ('active', 'expired') AND renew_at <= :now AND lifetime_hours > :short"
    " AND id > :after ORDER BY id LIMIT 500"
)
SHORT_LIVED_DUE: Final = DUE.replace("lifetime_hours > :short", "lifetime_hours <= :short")


async def add_certificate(session: Session, certificate: Certificate) -> bool:
    """Store a new one; False if its name is taken."""
    rows = await session.rows(
        "INSERT INTO certificate (id, common_name, sans, status, owner, requested_by, lifetime_hours, needs_csr,"
        " needs_approval, created_at) VALUES (:id, :common_name, :sans, :status, :owner, :requested_by,"
        " :lifetime_hours, :needs_csr, :needs_approval, :created_at) ON CONFLICT (common_name) DO NOTHING RETURNING id",
        {**msgspec.structs.asdict(certificate), "sans": as_json(certificate.sans)},
    )
    return bool(rows)


async def note_job(session: Session, certificate: str, job: str) -> bool:
    """A job works on it: one that had failed is requested again. False if there is no such certificate."""
    rows = await session.rows(
        "UPDATE certificate SET job_id = :job, status = CASE status WHEN 'failed' THEN 'requested' ELSE status END"
        " WHERE id = :id RETURNING id",
        {"id": certificate, "job": job},
    )
    return bool(rows)


async def save_signed(session: Session, certificate: str, signed: Signed, renew_at: datetime) -> bool:
    """A certificate was issued: it is active until it expires. False if it was deleted meanwhile."""
    rows = await session.rows(
        "UPDATE certificate SET status = 'active', serial = :serial, pem = :pem, not_after = :not_after,"
        " renew_at = :renew_at WHERE id = :id RETURNING id",
        {
            "id": certificate,
            "serial": signed.serial,
            "pem": signed.chain,
            "not_after": signed.not_after,
            "renew_at": renew_at,
        },
    )
    return bool(rows)


async def mark_failed(session: Session, certificate: str) -> None:
    """Its job has ended without a certificate. One that is still valid stays active."""
    await session.execute(
        "UPDATE certificate SET status = 'failed' WHERE id = :id AND status = 'requested'", {"id": certificate}
    )


async def delete_certificate(session: Session, certificate: str) -> bool:
    """Forget it; False if there is none."""
    return bool(await session.rows("DELETE FROM certificate WHERE id = :id RETURNING id", {"id": certificate}))


async def expire(session: Session, now: datetime) -> int:
    """Mark what has expired; how many."""
    sql = "UPDATE certificate SET status = 'expired' WHERE status = 'active' AND not_after <= :now RETURNING id"
    return len(await session.rows(sql, {"now": now}))


async def note_agent(session: Session, agent: str, now: datetime) -> None:
    """An agent has shown itself."""
    await session.execute(
        "INSERT INTO certificate_agent VALUES (:id, 'online', :now)"
        " ON CONFLICT (id) DO UPDATE SET status = 'online', last_seen_at = excluded.last_seen_at",
        {"id": agent, "now": now},
    )


async def mark_silent_agents(session: Session, now: datetime, silence: timedelta) -> list[str]:
    """Agents that were silent for so long are offline from now on; their names."""
    sql = (
        "UPDATE certificate_agent SET status = 'offline' WHERE status = 'online' AND last_seen_at <= :before"
        " RETURNING id"
    )
    return [row["id"] for row in await session.rows(sql, {"before": now - silence})]


async def note_found(session: Session, found: Found, now: datetime) -> None:
    """A scan has seen this certificate."""
    await session.execute(
        "INSERT INTO certificate_found VALUES (:fingerprint, :source, :subject, :not_after, :now)"
        " ON CONFLICT (fingerprint) DO UPDATE SET seen_at = excluded.seen_at, source = excluded.source",
        {**msgspec.structs.asdict(found), "now": now},
    )


async def note_endpoint(session: Session, endpoint: Endpoint) -> None:
    """A health check has an answer."""
    await session.execute(
        "INSERT INTO certificate_endpoint VALUES (:address, :status, :error, :checked_at)"
        " ON CONFLICT (address) DO UPDATE SET status = excluded.status, error = excluded.error,"
        " checked_at = excluded.checked_at",
        msgspec.structs.asdict(endpoint),
    )


async def note_run(session: Session, run: LoopRun) -> None:
    """A loop has ticked."""
    await session.execute(
        "INSERT INTO certificate_loop VALUES (:name, :ran_at, :did)"
        " ON CONFLICT (name) DO UPDATE SET ran_at = excluded.ran_at, did = excluded.did",
        msgspec.structs.asdict(run),
    )
