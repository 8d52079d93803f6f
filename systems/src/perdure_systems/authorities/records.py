"""The certificates that were issued. Orders are jobs, and have no table of their own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from perdure_systems.authorities.chains import Verified
from perdure_systems.authorities.connectors import Reason
from perdure_systems.authorities.settings import Authority
from perdure_systems.kit.database import Database, Session
from perdure_systems.kit.rows import as_json


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """An issued certificate, whose chain was verified before it was kept."""

    order_id: str
    authority: Authority
    authority_order: str
    serial: str
    subject: str
    issuer: str
    names: tuple[str, ...]
    not_before: datetime
    not_after: datetime
    fingerprint: str
    chain: str
    collected_at: datetime
    revoked_at: datetime | None = None
    revoke_reason: str | None = None


def certificate_of(
    order_id: str, authority: Authority, authority_order: str, found: Verified, at: datetime
) -> Certificate:
    """The record of a certificate that was just verified."""
    return Certificate(
        order_id=order_id,
        authority=authority,
        authority_order=authority_order,
        collected_at=at,
        **msgspec.structs.asdict(found),
    )


async def keep(session: Session, certificate: Certificate) -> None:
    """Keep a certificate; the same order again replaces it."""
    values = msgspec.structs.asdict(certificate) | {"names": as_json(certificate.names)}
    columns = ", ".join(values)
    marks = ", ".join(f":{name}" for name in values)
    changes = ", ".join(f"{name} = excluded.{name}" for name in values if name != "order_id")
    sql = (
        f"INSERT INTO authority_certificate ({columns}) VALUES ({marks}) ON CONFLICT (order_id) DO UPDATE SET {changes}"
    )
    await session.execute(sql, values)


async def note_revocation(session: Session, order_id: str, reason: Reason, at: datetime) -> None:
    """Note that a certificate is revoked; the first time and reason stay."""
    await session.execute(
        "UPDATE authority_certificate SET revoked_at = :at, revoke_reason = :reason"
        " WHERE order_id = :order_id AND revoked_at IS NULL",
        {"order_id": order_id, "at": at, "reason": str(reason)},
    )


async def find(database: Database, order_id: str) -> Certificate | None:
    """The certificate of an order, if it was issued."""
    sql = "SELECT * FROM authority_certificate WHERE order_id = :order_id"
    return await database.one(Certificate, sql, {"order_id": order_id})


async def find_all(database: Database, order_ids: Sequence[str]) -> dict[str, Certificate]:
    """The certificates of these orders, by order."""
    names = {f"id{number}": order_id for number, order_id in enumerate(order_ids)}
    if not names:
        return {}
    marks = ", ".join(f":{name}" for name in names)
    sql = f"SELECT * FROM authority_certificate WHERE order_id IN ({marks})"
    return {found.order_id: found for found in await database.all(Certificate, sql, names)}
