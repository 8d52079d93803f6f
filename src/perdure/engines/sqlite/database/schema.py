"""The schema: migrations, applied by one process at a time."""

from __future__ import annotations

from perdure.engines.shared.database.migrations import Applied, Migration, load_migrations, pending, require_current
from perdure.engines.shared.database.sql_files import fill_names
from perdure.engines.sqlite.database.database import PACKAGE, Database
from perdure.engines.sqlite.database.transaction import Transaction


class SchemaPart:
    """The schema of the store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.statements("database/schema_history.sql")
        self._known = load_migrations(PACKAGE)

    async def migrate(self) -> list[str]:
        """Apply missing migrations; writes nothing if there are none."""
        if not pending(self._known, await self._database.read(self._applied)):
            return []
        return await self._database.write(self._migrate)

    async def check_schema(self) -> None:
        """Raise SchemaError if migrations are missing, were changed after release, or are too new for this code."""
        require_current(self._known, await self._database.read(self._applied))

    async def why_read_only(self) -> str | None:
        """Why this process cannot write the file, since it opened it."""
        return self._database.why_read_only

    async def schema_dump(self) -> str:
        """The current schema, one statement after another, sorted by name."""

        def look(transaction: Transaction) -> list[str]:
            rows = transaction.run(self._sql["dump"], {"prefix": self._database.prefix})
            return [f"{sql};" for (sql,) in rows]

        return "\n\n".join(await self._database.read(look)) + "\n"

    def _migrate(self, transaction: Transaction) -> list[str]:
        transaction.run(self._sql["create_history"])
        missing = pending(self._known, self._applied(transaction))
        for migration in missing:
            self._apply(transaction, migration)
        return [migration.name for migration in missing]

    def _apply(self, transaction: Transaction, migration: Migration) -> None:
        sql = fill_names(migration.sql, self._name)
        for statement in sql.split(";\n"):
            if statement.strip():
                transaction.run(statement)
        record = {
            "number": migration.number,
            "name": migration.name,
            "release": migration.release,
            "checksum": migration.checksum,
            "now": transaction.now,
        }
        transaction.run(self._sql["record"], record)

    def _applied(self, transaction: Transaction) -> list[Applied]:
        if not transaction.run(self._sql["history_exists"], {"table": self._name("migration")}):
            return []
        return [Applied(*row) for row in transaction.run(self._sql["history"])]

    def _name(self, thing: str) -> str:
        return f"{self._database.prefix}{thing}"
