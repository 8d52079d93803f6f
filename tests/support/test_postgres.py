"""The throw-away server keeps its own promises; crash tests rest on them."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import psycopg
import pytest
from tests.support.postgres import PostgresServer


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
