"""The throw-away server keeps its own promises; crash tests rest on them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import psycopg
import pytest
from tests.support.databases.postgres import PostgresServer, _remove_leftovers
from tests.support.waiting import is_gone, until_sync


def test_a_durable_server_keeps_what_was_committed_through_kill_and_restart() -> None:
    server = PostgresServer(durable=True)
    try:
        url = server.url
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE witness AS SELECT 1 AS one")
        for end in (server.kill, server.stop):
            end()
            with pytest.raises(psycopg.OperationalError):
                psycopg.connect(url)
            server.start()
            with psycopg.connect(url) as connection:
                assert connection.execute("SELECT one FROM witness").fetchone() == (1,)
                assert connection.execute("SHOW fsync").fetchone() == ("on",)
    finally:
        server.discard()
    folder = Path(dict(parse_qsl(urlsplit(url).query))["host"]).parent
    assert not folder.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_a_test_run_that_is_killed_leaves_no_server_and_the_next_one_removes_its_files() -> None:
    program = (
        "from tests.support.databases.postgres import PostgresServer; server = PostgresServer(); "
        "print(server.pid, server.socket.parent, flush=True); input()"
    )
    run = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]
    )
    assert run.stdout is not None
    pid, folder = run.stdout.readline().decode().split()
    server = int(pid)
    _remove_leftovers()
    assert not is_gone(server)
    assert Path(folder, "data").is_dir()
    run.kill()
    run.communicate()
    until_sync(lambda: is_gone(server))
    _remove_leftovers()
    assert not Path(folder).exists()
