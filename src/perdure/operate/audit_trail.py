"""The audit trail: who did what, with entries of applications."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from perdure.domain.jobs.ids import JobId
from perdure.domain.operate.audit import SYSTEM, AuditEntry, By, Note
from perdure.errors import ArgumentError, PayloadError
from perdure.kinds.encoding import encode
from perdure.kinds.options import checked_name
from perdure.operate.records import AuditPage
from perdure.policy.failures import MESSAGE_LIMIT_CHARACTERS, storable
from perdure.policy.secrets.redaction import redact_document
from perdure.storage.checking import check_whole, echo
from perdure.storage.operate.audit import AuditFilter
from perdure.storage.port import Store

ENTRIES_PER_PAGE: Final = 500
_LARGEST_ID: Final = 2**63 - 1
_ACTION_LIMIT_CHARACTERS: Final = 100
_SOURCE_LIMIT_CHARACTERS: Final = 100
_DETAILS_LIMIT_CHARACTERS: Final = 16 * 1024
_NUL: Final = "\\u0000"


def checked_actor(actor: object) -> str:
    """The name of an actor; the engine's own name is refused."""
    if not isinstance(actor, str) or not actor.strip():
        raise ArgumentError("actor", "must say who is acting: the audit trail records it")
    if actor == SYSTEM:
        raise ArgumentError(
            "actor", f"must not be {SYSTEM!r}, the name of the engine itself: an application is app:NAME"
        )
    return actor


async def read_trail(store: Store, which: AuditFilter, limit: int, before: int | None) -> AuditPage:
    """A page of the entries that match."""
    check_whole("limit", limit, 1, ENTRIES_PER_PAGE)
    if before is not None:
        check_whole("before", before, 1, _LARGEST_ID)
    found = await store.audit(which, limit + 1, before)
    shown = tuple(found[:limit])
    return AuditPage(shown, shown[-1].id if len(found) > limit else None)


def checked_source(source: object) -> str:
    """The source of an action: a surface, and its address if it has one."""
    if not isinstance(source, str) or not source.strip():
        raise ArgumentError("source", f'must name a surface, as "code" or "api 10.0.0.7", got {echo(source)}')
    return storable(source, _SOURCE_LIMIT_CHARACTERS)


def checked_why(why: object) -> str | None:
    """A reason as stored; a blank one becomes None."""
    if why is not None and not isinstance(why, str):
        raise ArgumentError("why", f"must be text or None, got {echo(why)}")
    return storable(why, MESSAGE_LIMIT_CHARACTERS) if why is not None and why.strip() else None


async def add_entry(
    store: Store, by: By, action: str, job_id: JobId | None, details: Mapping[str, Any] | None
) -> AuditEntry:
    """Add an entry; a value that cannot be stored is refused by name."""
    known = checked_name("action", action, _ACTION_LIMIT_CHARACTERS)
    jobs = 0 if job_id is None else 1
    return await store.record(by, Note(action=known, job_id=job_id, jobs=jobs, details=_document(details)))


def _document(details: object) -> dict[str, Any]:
    if details is None:
        return {}
    if not isinstance(details, Mapping):
        raise ArgumentError("details", f'must give values by name, as {{"ticket": 42}}, got {echo(details)}')
    try:
        text = redact_document(encode(dict(details))) or "{}"
    except (TypeError, ValueError, NotImplementedError, OverflowError, RecursionError) as error:
        raise PayloadError("details", f"cannot be stored as JSON: {error}") from error
    if len(text) > _DETAILS_LIMIT_CHARACTERS:
        raise PayloadError("details", f"take {len(text):,} characters, {_DETAILS_LIMIT_CHARACTERS:,} are allowed")
    if _NUL in text:
        raise PayloadError("details", "hold the NUL character, which cannot be stored: leave it out")
    return msgspec.json.decode(text, type=dict[str, Any])
