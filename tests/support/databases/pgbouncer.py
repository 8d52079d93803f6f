"""A PgBouncer in front of a test's PostgreSQL server.

Any database of the server can be named. Only a local socket is opened. PgBouncer refuses to run as root, so as root it
runs as the user of the test's server.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import psycopg
from tests.support.databases.postgres import system_user

_PATIENCE: Final = 30.0
_PORT: Final = 6432
_PLACES: Final = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"))
PROGRAM: Final = shutil.which("pgbouncer", path=_PLACES)
MISSING: Final = "pgbouncer is not installed: apt-get install pgbouncer"


class PgBouncer:
    """One pooler: started when made, gone without a trace after `discard`."""

    def __init__(self, server: str, *, mode: str = "transaction", size: int = 20) -> None:
        if PROGRAM is None:
            raise RuntimeError(MISSING)
        self._folder = Path(tempfile.mkdtemp(prefix="perdure-pgb-"))
        user = system_user()
        settings = self._folder / "pgbouncer.ini"
        settings.write_text(_settings(server, self._folder, mode, size))
        if user:
            shutil.chown(self._folder, user)
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [PROGRAM, str(settings)],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=self._folder,
                user=user,
                start_new_session=True,
            )
        self._wait_until_it_answers(server)

    def url(self, server: str) -> str:
        """The same database as this URL of the server names, through the pooler."""
        parts = urlsplit(server)
        options = dict(parse_qsl(parts.query)) | {"host": str(self._folder), "port": str(_PORT)}
        return f"postgresql://{parts.username}@{parts.path}?{urlencode(options)}"

    def discard(self) -> None:
        """Stop it and delete what it left."""
        self._process.terminate()  # at once, without waiting for clients
        self._process.wait(_PATIENCE)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _wait_until_it_answers(self, server: str) -> None:
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                psycopg.connect(self.url(server)).close()
            except psycopg.OperationalError as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    said = (self._folder / "log").read_text()[-1_000:]
                    self.discard()
                    raise RuntimeError(f"pgbouncer did not start: {said}") from error
                time.sleep(0.02)
            else:
                return


def _settings(server: str, folder: Path, mode: str, size: int) -> str:
    parts = urlsplit(server)
    options = dict(parse_qsl(parts.query))
    host = options.get("host") or parts.hostname
    port = options.get("port") or parts.port or 5432
    users = folder / "users"
    users.write_text(f'"{parts.username}" "{parts.password or ""}"\n')
    return "\n".join(
        (
            "[databases]",
            f"* = host={host} port={port}",
            "[pgbouncer]",
            f"unix_socket_dir = {folder}",
            f"listen_port = {_PORT}",
            "listen_addr =",
            "auth_type = trust",
            f"auth_file = {users}",
            f"pool_mode = {mode}",
            f"default_pool_size = {size}",
            "max_client_conn = 500",
            "server_login_retry = 0",
            "",
        )
    )
