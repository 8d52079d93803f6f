"""Numbered, checksummed, additive migrations: what is common to both engines.

Each engine keeps `sql/migrations/NNNN_what.sql`, whose first line says in which release it came: `-- release: 1`. The
`migration` table records what was applied, with a checksum of the file, so that a database that was changed by hand, or
made by code that is too new, is noticed before anything is written.

Two neighbouring releases may share one database (G10): migrations only add to what an earlier release has, so its code
works on what the next one has added, and ignores it. Later releases are unknown to it, and refused. Something added in
the same release may be dropped again, after its data was moved.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from importlib.resources import files
from itertools import pairwise
from typing import Final

from msgspec import Struct

from perdure.errors import SchemaError

RELEASE: Final = 1
"""The release of this code; rises by one with each version that may bring migrations."""

_FIRST_LINE: Final = re.compile(r"-- release: ([0-9]+)\n")


class Migration(Struct, frozen=True):
    """One step of the schema's history."""

    number: int
    name: str
    release: int
    sql: str
    checksum: str


class Applied(Struct, frozen=True):
    """A migration that a database records as applied."""

    number: int
    release: int
    checksum: str


def load_migrations(package: str) -> list[Migration]:
    """The migrations that this code knows, in order."""
    found = []
    for file in files(package).joinpath("sql", "migrations").iterdir():
        if file.name.endswith(".sql"):
            sql = file.read_text(encoding="utf-8")
            name = file.name.removesuffix(".sql")
            found.append(Migration(int(name[:4]), name, _release(name, sql), sql, _checksum(sql)))
    found.sort(key=lambda migration: migration.name)
    for earlier, later in pairwise(found):
        if earlier.number == later.number:
            raise SchemaError(
                f"migrations {earlier.name} and {later.name} have the same number: renumber the later one"
            )
    return found


def pending(known: list[Migration], applied: Iterable[Applied]) -> list[Migration]:
    """The migrations still to be applied, given those that were; refuses what it cannot trust."""
    checksums = {}
    for step in applied:
        if step.release > RELEASE + 1:
            raise SchemaError(
                f"the database is at release {step.release} (schema {step.number}), this perdure is release {RELEASE} "
                f"and can share it with release {RELEASE + 1} at most: upgrade perdure"
            )
        checksums[step.number] = step.checksum
    for migration in known:
        if checksums.get(migration.number, migration.checksum) != migration.checksum:
            raise SchemaError(
                f"migration {migration.name} was applied with different content: restore the original schema"
            )
    return [migration for migration in known if migration.number not in checksums]


def require_current(known: list[Migration], applied: Iterable[Applied]) -> None:
    """Raise SchemaError unless every known migration is applied, and none of a release that is too new."""
    if missing := pending(known, applied):
        names = ", ".join(migration.name for migration in missing)
        raise SchemaError(f"migrations are missing ({names}): run `perdure migrate`")


def _release(name: str, sql: str) -> int:
    found = _FIRST_LINE.match(sql)
    if found is None:
        raise SchemaError(f"migration {name} has no release in its first line: write `-- release: {RELEASE}`")
    return int(found[1])


def _checksum(sql: str) -> str:
    return hashlib.sha256(sql.encode()).hexdigest()
