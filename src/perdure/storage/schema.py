"""The shape of the database."""

from __future__ import annotations

from typing import Protocol


class SchemaStore(Protocol):
    """The shape of the database."""

    async def migrate(self) -> list[str]:
        """Bring the schema up to date, one process at a time; the names of the migrations applied now."""

    async def check_schema(self) -> None:
        """Raise SchemaError if migrations are missing, were changed after the fact, or are too new for this code.

        Those of the next release are none of its business: neighbours may share a database (G10).
        """
