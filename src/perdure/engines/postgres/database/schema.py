"""The schema: migrations, one process at a time, each in the same transaction as its record."""

from __future__ import annotations

from typing import Final

from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.wire import Wire
from perdure.engines.shared.database.migrations import Applied, Migration, load_migrations, pending, require_current
from perdure.engines.shared.database.sql_files import fill_names

_PACKAGE: Final = "perdure.engines.postgres"


class SchemaPart:
    """Brings the schema up to date, checks it, and describes it."""

    def __init__(self, naming: Naming, pool: Pool) -> None:
        self._naming = naming
        self._statements = naming.statements("database/schema_history.sql")
        self._pool = pool
        self._known = load_migrations(_PACKAGE)

    async def migrate(self) -> list[str]:
        """Bring the schema up to date; the names of the migrations applied now."""
        if not pending(self._known, await self._pool.run(self._applied)):
            return []
        return await self._pool.transaction(self._apply)

    async def check_schema(self) -> None:
        """Raise SchemaError if migrations are missing, were changed after release, or are too new for this code."""
        require_current(self._known, await self._pool.run(self._applied))

    async def why_read_only(self) -> str | None:
        """Whether the server is a standby, or its sessions only read; a standby can be promoted at any time."""
        [[is_standby, only_reads]] = await self._pool.rows(self._statements["why_read_only"])
        if is_standby:
            return "the server is a standby"
        return "the server lets its sessions only read (default_transaction_read_only)" if only_reads else None

    async def schema_dump(self) -> list[str]:
        """Every table, column, index and constraint as a line of text, without the names of schema and prefix."""
        params = {"schema": self._naming.schema, "prefix": self._naming.prefix}
        rows = await self._pool.rows(self._statements["describe"], params)
        ours = f"{self._naming.schema}.{self._naming.prefix}"
        return sorted(line.replace(ours, "").replace(f" {self._naming.prefix}", " ") for (line,) in rows)

    async def _applied(self, wire: Wire) -> list[Applied]:
        [[exists]] = await wire.fetch(self._statements["history_exists"])
        return [Applied(*row) for row in await wire.fetch(self._statements["history"])] if exists else []

    async def _apply(self, wire: Wire) -> list[str]:
        await wire.fetch(self._statements["lock"], {"who": f"perdure migrate {self._naming.channel}"})
        [[exists]] = await wire.fetch(self._statements["schema_exists"], {"schema": self._naming.schema})
        if not exists:
            await wire.fetch(f'CREATE SCHEMA "{self._naming.schema}"')
        await wire.fetch(self._statements["create_history"])
        missing = pending(self._known, await self._applied(wire))
        for migration in missing:
            await self._apply_one(migration, wire)
        return [migration.name for migration in missing]

    async def _apply_one(self, migration: Migration, wire: Wire) -> None:
        await wire.script(fill_names(migration.sql, self._naming))
        record = {
            "number": migration.number,
            "name": migration.name,
            "release": migration.release,
            "checksum": migration.checksum,
        }
        await wire.fetch(self._statements["record"], record)
