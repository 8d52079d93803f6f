"""Numbered, checksummed, additive migrations: what is common to both engines.

Each engine keeps `sql/migrations/NNNN_what.sql`. The `migration` table records what was applied, with a checksum of
the file, so that a database changed by other hands, or made by newer code, is noticed before anything is written.
"""

from __future__ import annotations

import hashlib
from importlib.resources import files

from msgspec import Struct

from perdure.errors import SchemaError


class Migration(Struct, frozen=True):
    """One step of the schema's history."""

    number: int
    name: str
    sql: str
    checksum: str


def load_migrations(package: str) -> list[Migration]:
    """The migrations that this code knows, in order."""
    found = []
    for file in files(package).joinpath("sql", "migrations").iterdir():
        if file.name.endswith(".sql"):
            sql = file.read_text(encoding="utf-8")
            name = file.name.removesuffix(".sql")
            found.append(Migration(int(name[:4]), name, sql, hashlib.sha256(sql.encode()).hexdigest()))
    return sorted(found, key=lambda migration: migration.number)


def pending(known: list[Migration], applied: dict[int, str]) -> list[Migration]:
    """The migrations still to be applied, given the checksums of those that were; refuses what it cannot trust."""
    newest = known[-1].number
    beyond = max(applied, default=0)
    if beyond > newest:
        raise SchemaError(
            f"the database is at schema {beyond}, this perdure knows only up to {newest}: upgrade perdure"
        )
    for migration in known:
        if applied.get(migration.number, migration.checksum) != migration.checksum:
            raise SchemaError(f"migration {migration.name} was applied in another form: restore the original schema")
    return [migration for migration in known if migration.number not in applied]


def require_current(known: list[Migration], applied: dict[int, str]) -> None:
    """Raise SchemaError unless every known migration is applied, and no other."""
    if missing := pending(known, applied):
        names = ", ".join(migration.name for migration in missing)
        raise SchemaError(f"migrations are missing ({names}): run `perdure migrate`")
