"""The audit trail."""

from __future__ import annotations

from msgspec import Struct

from perdure.domain.operate.audit import AuditEntry
from perdure.operate.desk import Desk
from perdure.surfaces.api.filters import read_cursor, write_cursor
from perdure.surfaces.api.route import Call, Given
from perdure.surfaces.api.values import Instant, Limit


class AuditQuery(Given, frozen=True, kw_only=True):
    """Which entries: about a job, by an actor, of an action, from a surface, in a span of time."""

    job: str | None = None
    actor: str | None = None
    action: str | None = None
    source: str | None = None
    since: Instant | None = None
    until: Instant | None = None
    limit: Limit = 50
    cursor: str | None = None


class AuditList(Struct, frozen=True, kw_only=True):
    """A page of the audit trail, newest first. `next` is the `cursor` of the following page; null: this is the last."""

    entries: tuple[AuditEntry, ...]
    next: str | None = None


async def list_audit(call: Call[AuditQuery, None]) -> AuditList:
    """List who did what, newest first."""
    return await trail_page(call.desk, call.query)


async def trail_page(desk: Desk, query: AuditQuery) -> AuditList:
    """A page of the audit trail."""
    listed = ["audit", query.job, query.actor, query.action, query.source, query.since, query.until]
    before = read_cursor(listed, query.cursor)
    page = await desk.audit(
        job=query.job,
        actor=query.actor,
        action=query.action,
        source=query.source,
        since=query.since,
        until=query.until,
        limit=query.limit,
        before=None if before is None else int(before),
    )
    return AuditList(entries=page.entries, next=write_cursor(listed, page.next))
