"""The port for the audit trail."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct
from msgspec.structs import force_setattr

from perdure.domain.jobs.ids import JobId, as_job_id
from perdure.domain.operate.audit import AuditEntry, By, Note
from perdure.kinds.options import checked_instant
from perdure.storage.checking import check_text


class AuditFilter(Struct, frozen=True, kw_only=True):
    """A filter for entries; all given conditions must match: from `since` on, and before `until`.

    `source` means a surface, such as "desk", with any address behind it, or one surface and address.
    """

    job_id: JobId | None = None
    actor: str | None = None
    action: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    source: str | None = None
    bulk: str | None = None

    if TYPE_CHECKING:  # the accepted types; the stored ones stand above

        def __init__(
            self,
            *,
            job_id: str | None = ...,
            actor: str | None = ...,
            action: str | None = ...,
            since: datetime | None = ...,
            until: datetime | None = ...,
            source: str | None = ...,
            bulk: str | None = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        if self.job_id is not None:
            force_setattr(self, "job_id", as_job_id(self.job_id, field="job_id"))
        for field in ("actor", "action", "source", "bulk"):
            if (text := getattr(self, field)) is not None:
                check_text(field, text)
        for field in ("since", "until"):
            if (moment := getattr(self, field)) is not None:
                checked_instant(field, moment)


class AuditStore(Protocol):
    """Who did what. Entries are added, never changed; only the retention of `prune` deletes old ones."""

    async def audit(self, which: AuditFilter, limit: int, before: int | None = None) -> list[AuditEntry]:
        """The entries that match, newest first by their time, after the entry `before`."""

    async def record(self, by: By, note: Note) -> AuditEntry:
        """Add an entry of an application, or of a command that changes nothing in the store."""
