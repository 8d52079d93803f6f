"""What an engine does for backups."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct


class Backup(Struct, frozen=True):
    """A copy of the database that was opened and verified."""

    path: str
    bytes: int
    jobs: int
    seconds: float


class BackupStore(Protocol):
    """Copies of the database."""

    async def back_up(self, path: str) -> Backup:
        """Copy the database to a new file while work continues, and check the copy by opening it.

        An engine that has better tools of its own raises StoreRefused and names them.
        """
