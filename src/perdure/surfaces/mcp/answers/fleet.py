"""Workers and the audit trail as agents see them."""

from __future__ import annotations

from datetime import datetime

import msgspec

from perdure.domain.operate.audit import AuditEntry
from perdure.domain.worker import WorkerView
from perdure.surfaces.mcp.answers.base import Answer, Part
from perdure.surfaces.mcp.quoting import Quoted, Quoter, name


class WorkerLine(Part):
    """A worker. `lost_at`: its heartbeat has stopped."""

    name: str
    host: str
    version: str
    queues: list[str]
    slots: int
    running: int
    phase: str
    quiet_since: datetime | None
    started_at: datetime
    last_heartbeat_at: datetime
    lost_at: datetime | None


class WorkersNow(Answer):
    """Workers, running ones first."""

    workers: list[WorkerLine]
    more: int


class AuditLine(Part):
    """Who did what, when, why, and from where."""

    id: int
    at: datetime
    actor: str
    action: str
    job: str | None
    jobs: int
    source: str | None
    why: Quoted | None
    details: Quoted


class AuditTrail(Answer):
    """Entries of the audit trail, newest first. `next`: give it as `before` for the next page."""

    entries: list[AuditLine]
    next: int | None


def worker_line(worker: WorkerView) -> WorkerLine:
    """One worker."""
    return WorkerLine(
        name=name(worker.name),
        host=name(worker.process.host),
        version=name(worker.version),
        queues=[name(queue) for queue in worker.queues[:20]],
        slots=worker.concurrency,
        running=worker.running,
        phase=worker.phase,
        quiet_since=worker.quiet_at,
        started_at=worker.started_at,
        last_heartbeat_at=worker.beat_at,
        lost_at=worker.dead_at,
    )


def audit_line(quoter: Quoter, entry: AuditEntry) -> AuditLine:
    """One entry."""
    return AuditLine(
        id=entry.id,
        at=entry.at,
        actor=name(entry.actor),
        action=name(entry.action),
        job=entry.job_id,
        jobs=entry.jobs,
        source=None if entry.source is None else name(entry.source),
        why=quoter.maybe(entry.why, 300),
        details=quoter.text(msgspec.json.encode(entry.details).decode(), 500),
    )
