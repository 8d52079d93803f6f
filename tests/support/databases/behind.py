"""A look behind the port, for what no method shows: the audit trail, the table of migrations, rows gone missing."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import apsw
import psycopg

from perdure.engines.shared.database.sql_files import fill_names


def with_option(url: str, name: str, value: str) -> str:
    """The same database under one more option, such as `prefix` or `schema`."""
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query)) | {name: value}
    return f"{url.partition('?')[0]}?{urlencode(options)}"


def query(url: str, sql: str) -> list[tuple[Any, ...]]:
    """Run one statement on the database behind a URL, and commit. Tables are written `{job}`, `{audit}` and so on."""
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    if parts.scheme == "sqlite":
        # The same library as the engine's: a second one in this process would drop its locks.
        connection = apsw.Connection(parts.path[1:])
        try:
            connection.set_busy_timeout(5_000)
            return connection.execute(fill_names(sql, lambda name: f"perdure_{name}")).fetchall()
        finally:
            connection.close()
    schema = options.pop("schema", "public")
    plain = f"{url.partition('?')[0]}?{urlencode(options)}"
    with psycopg.connect(plain) as connected:
        connected.execute(
            "SELECT set_config('search_path', %s, true), set_config('lock_timeout', '5s', true)", [schema]
        )
        cursor = connected.execute(fill_names(sql, str).encode())
        return cursor.fetchall() if cursor.description else []
