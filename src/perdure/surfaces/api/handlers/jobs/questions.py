"""Approvals and events, which jobs wait for."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from perdure.domain.flows.approval import Approval
from perdure.domain.flows.flow import Emission
from perdure.errors import PayloadError
from perdure.kinds.encoding import encode
from perdure.operate.records import Asking
from perdure.surfaces.api.filters import Filter
from perdure.surfaces.api.route import Call, Given

_PAYLOAD_LIMIT_BYTES = 64 * 1024


class ApprovalList(Struct, frozen=True):
    """The jobs that wait for an answer, newest first."""

    approvals: tuple[Asking, ...]


class Answer(Given, frozen=True, kw_only=True):
    """Yes or no, and a note for the job. `ahead`: answer even if the job has not asked yet."""

    approved: bool
    note: str | None = None
    why: str | None = None
    ahead: bool = False


class NewEvent(Given, frozen=True, kw_only=True):
    """An event, with any JSON as its payload."""

    event: str
    payload: Any | msgspec.UnsetType = msgspec.UNSET
    why: str | None = None


async def list_approvals(call: Call[Filter, None]) -> ApprovalList:
    """List jobs that wait for a person's answer."""
    return ApprovalList(tuple(await call.desk.approvals(await call.query.read(call.desk))))


async def answer_approval(call: Call[None, Answer]) -> Approval:
    """Answer a job's question; the first answer counts."""
    body = call.body
    return await call.desk.answer(
        call.path["id"],
        call.path["name"],
        approved=body.approved,
        note=body.note,
        why=body.why,
        ahead=body.ahead,
    )


async def emit_event(call: Call[None, NewEvent]) -> Emission:
    """Emit an event and wake the jobs waiting for it; the first emission wins."""
    body = call.body
    payload = None if body.payload is msgspec.UNSET else encode(body.payload)
    if payload is not None and len(payload.encode()) > _PAYLOAD_LIMIT_BYTES:
        raise PayloadError("payload", f"takes {len(payload.encode()):,} bytes, {_PAYLOAD_LIMIT_BYTES:,} are allowed")
    return await call.desk.emit(body.event, payload, why=body.why)
