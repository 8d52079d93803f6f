"""A database that goes back in time under those who are connected to it.

What a standby has that is promoted before it has heard of the last commits, and what a backup holds that is restored:
all rows as they were, and the counters and sequences too.
"""

from __future__ import annotations

from tests.support.databases.behind import query

_TABLES = {
    "sqlite": "SELECT substr(name, 9) FROM sqlite_schema WHERE type = 'table' AND name LIKE 'perdure@_%' ESCAPE '@'",
    "postgresql": "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'",
}
_SEQUENCES = """
    SELECT format('SELECT setval(%L, %s, %L)', seqrelid::regclass, coalesce(last, seqstart), last IS NOT NULL)
    FROM pg_sequence JOIN pg_class c ON c.oid = seqrelid, pg_sequence_last_value(seqrelid) AS last
    WHERE c.relnamespace = current_schema()::regnamespace
"""


class Snapshot:
    """The database behind a URL as it was when this was made."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._is_sqlite = url.startswith("sqlite")
        engine = "sqlite" if self._is_sqlite else "postgresql"
        self._tables = sorted(name for (name,) in query(url, _TABLES[engine]) if name != "migration")
        copies = [f"CREATE TABLE copy_of_{name} AS SELECT * FROM {{{name}}}" for name in self._tables]
        query(url, self._in_one(copies))
        self._rewinds = [] if self._is_sqlite else [sql for (sql,) in query(url, _SEQUENCES)]

    def put_back(self) -> None:
        """Restore this state of the database; open connections stay open."""
        steps = list(self._rewinds)
        if not self._is_sqlite:
            steps.insert(0, f"LOCK TABLE {', '.join(f'{{{name}}}' for name in self._tables)}")
        values = "" if self._is_sqlite else "OVERRIDING SYSTEM VALUE "
        for name in self._tables:
            steps.append(f"DELETE FROM {{{name}}}")
            steps.append(f"INSERT INTO {{{name}}} {values}SELECT * FROM copy_of_{name}")
        query(self._url, self._in_one(steps))

    def _in_one(self, steps: list[str]) -> str:
        begin = "BEGIN IMMEDIATE" if self._is_sqlite else "BEGIN"
        return "; ".join([begin, *steps, "COMMIT"])
