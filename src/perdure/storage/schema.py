"""The schema of the database."""

from __future__ import annotations

from typing import Protocol


class SchemaStore(Protocol):
    """The schema of the database."""

    async def migrate(self) -> list[str]:
        """Migrate the schema, one process at a time; returns the names of the applied migrations."""

    async def check_schema(self) -> None:
        """Raise SchemaError if migrations are missing, were changed after release, or are too new for this code.

        Migrations of the next release are accepted: neighbouring releases may share a database (G10).
        """

    async def why_read_only(self) -> str | None:
        """Why nothing can be written just now, for operators; None: the database takes writes."""
