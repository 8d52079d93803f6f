"""Backups: PostgreSQL has its own tools for them."""

from __future__ import annotations

from typing import Never

from perdure.errors import StoreRefused


class BackupPart:
    """Refuses to make backups, and names the tools that do."""

    async def back_up(self, path: str) -> Never:
        """See BackupStore: PostgreSQL has tools of its own for this."""
        raise StoreRefused(
            f"perdure does not back up PostgreSQL to {path}: use pg_dump, pg_basebackup with an archive of the "
            "WAL, or your provider's snapshots"
        )
