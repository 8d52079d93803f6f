"""The audit trail: who did what, and what applications add to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from perdure.domain.jobs.ids import JobId
from perdure.domain.operate.audit import SYSTEM, AuditEntry
from perdure.errors import ArgumentError, PayloadError
from perdure.kinds.encoding import encode
from perdure.kinds.options import checked_name
from perdure.operate.records import AuditPage
from perdure.storage.checking import check_whole, echo
from perdure.storage.operate.audit import AuditFilter
from perdure.storage.port import Store

LONGEST_PAGE: Final = 500
_LARGEST_ID: Final = 2**63 - 1
_LONGEST_ACTION: Final = 100
_LONGEST_DETAILS: Final = 16 * 1024
_NUL: Final = "\\u0000"


def checked_actor(actor: object) -> str:
    """The name of somebody who acts; that of the engine is its own."""
    if not isinstance(actor, str) or not actor.strip():
        raise ArgumentError("actor", "must say who is acting: the audit trail records it")
    if actor == SYSTEM:
        raise ArgumentError(
            "actor", f"must not be {SYSTEM!r}, the name of the engine itself: an application is app:NAME"
        )
    return actor


async def read_trail(store: Store, which: AuditFilter, limit: int, before: int | None) -> AuditPage:
    """A page of the entries that match."""
    check_whole("limit", limit, 1, LONGEST_PAGE)
    if before is not None:
        check_whole("before", before, 1, _LARGEST_ID)
    found = await store.audit(which, limit + 1, before)
    shown = tuple(found[:limit])
    return AuditPage(shown, shown[-1].id if len(found) > limit else None)


async def add_entry(
    store: Store, actor: str, action: str, job_id: JobId | None, details: Mapping[str, Any] | None
) -> AuditEntry:
    """Add an entry; refuses what cannot be stored by name."""
    return await store.record(actor, checked_name("action", action, _LONGEST_ACTION), job_id, _document(details))


def _document(details: object) -> str:
    if details is None:
        return "{}"
    if not isinstance(details, Mapping):
        raise ArgumentError("details", f'must give values by name, as {{"ticket": 42}}, got {echo(details)}')
    try:
        text = encode(dict(details))
    except (TypeError, ValueError, NotImplementedError, OverflowError, RecursionError) as error:
        raise PayloadError("details", f"cannot be stored as JSON: {error}") from error
    if len(text) > _LONGEST_DETAILS:
        raise PayloadError("details", f"take {len(text):,} characters, {_LONGEST_DETAILS:,} are allowed")
    if _NUL in text:
        raise PayloadError("details", "hold the NUL character, which cannot be stored: leave it out")
    return text
