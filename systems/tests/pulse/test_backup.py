"""Hot backups (C14): by hand and on a timer on SQLite; on PostgreSQL its own tools do it, and the API says so."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

import apsw
import psycopg
import pytest
from structlog.typing import EventDict
from systems.tests.pulse.client import ADMIN, client
from systems.tests.pulse.support import found, put
from tests.support.databases.postgres import _installation

from perdure.testing import Sandbox
from perdure_systems.pulse.documents import Document
from perdure_systems.pulse.jobs import app, database
from perdure_systems.pulse.settings import FOR_TESTS, worker_settings
from perdure_systems.pulse.submitting import submit
from perdure_systems.pulse.system import read_worker_settings

SQLITE = pytest.mark.parametrize("engine_url", ["sqlite"], indirect=True)
POSTGRES = pytest.mark.parametrize("engine_url", ["postgres"], indirect=True)


def counted(copy: Path) -> tuple[str, int, int]:
    """What a copy is worth: whether it is sound, its jobs and its documents."""
    connection = apsw.Connection(str(copy), flags=apsw.SQLITE_OPEN_READONLY)
    verdict: Any
    jobs: Any
    documents: Any
    try:
        [(verdict,)] = connection.execute("PRAGMA integrity_check").fetchall()
        [(jobs,)] = connection.execute("SELECT count(*) FROM perdure_job").fetchall()
        [(documents,)] = connection.execute("SELECT count(*) FROM pulse_document").fetchall()
    finally:
        connection.close()
    return str(verdict), int(jobs), int(documents)


class Writers:
    """Submit documents, one after the other, for as long as the block lasts."""

    def __init__(self) -> None:
        self.written = 0

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._write())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _write(self) -> None:
        while True:
            await asyncio.shield(put(1, f"{self.written}.txt", "index"))
            self.written += 1


@SQLITE
async def test_c14_a_copy_is_made_while_writes_go_on_and_is_sound(
    box: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database is large enough that writes come in between. A job and its document are in the copy, or neither."""
    monkeypatch.setenv("PULSE_ADMIN_TOKEN", "secret")
    monkeypatch.setenv("PULSE_BACKUP_FOLDER", str(tmp_path / "copies"))
    for number in range(12):
        await submit(f"large{number}.txt", "index", Document("large", "x" * 4_000_000))
    async with client() as http, Writers() as writers:
        before = await found(lambda: _more_than(writers, 3))
        answer = await http.post("/api/pulse/backup", headers=ADMIN)
        after = writers.written
        await found(lambda: _more_than(writers, after))
    assert answer.status_code == 201, answer.text
    verdict, jobs, documents = counted(Path(answer.json()["path"]))
    assert verdict == "ok"
    assert jobs == documents == answer.json()["jobs"]
    assert jobs >= 12 + before
    assert after > before, "writers were not held up: they hold the engine's lock, and the copy holds none"
    del box


async def _more_than(writers: Writers, least: int) -> int:
    return writers.written if writers.written > least else 0


@SQLITE
async def test_c14_copies_are_made_on_a_timer_and_the_oldest_go(box: Sandbox, engine_url: str, tmp_path: Path) -> None:
    """One copy a minute, two are kept; a restart within the minute repeats none."""
    await database.migrate()
    folder = tmp_path / "copies"
    plan = {"PULSE_BACKUP_FOLDER": str(folder), "PULSE_BACKUP_EVERY": "1m", "PULSE_BACKUP_KEEP": "2"}
    names: list[list[str]] = []
    for travel in ("0s", "59s", "1s", "60s"):
        box.travel(travel)
        wanted = len(names) if travel == "59s" else None
        names.append(await _copies_after_a_start(folder, plan, engine_url, names[-1] if names else [], wanted))
    first, again, second, third = names
    assert (len(first), again, len(second), len(third)) == (1, first, 2, 2)
    assert first[0] in second
    assert first[0] not in third
    assert all(counted(folder / name)[0] == "ok" for name in third)


async def _copies_after_a_start(
    folder: Path, plan: dict[str, str], url: str, before: list[str], unchanged: int | None
) -> list[str]:
    """Start a worker, and wait until the folder has changed, or until the worker has looked at it."""
    worker = await app.worker(worker_settings(FOR_TESTS | plan, url=url))
    running = asyncio.create_task(worker.run())
    await worker.started()

    async def look() -> list[str]:
        names = await asyncio.to_thread(lambda: sorted(path.name for path in folder.glob("perdure-*.db")))
        [loop] = [loop for loop in (worker.describe().head or pytest.fail("no head")).loops if loop.name == "backups"]
        has_looked = loop.ticks > 0 and loop.running_for is None
        return names if has_looked and (names != before or unchanged is not None) else []

    names = await found(look)
    worker.stop()
    await asyncio.wait_for(running, 30)
    return names


@SQLITE
async def test_c14_backups_are_for_admins_only(box: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULSE_ADMIN_TOKEN", "secret")
    async with client() as http:
        assert (await http.post("/api/pulse/backup")).status_code == 401
        wrong = {"Authorization": "Bearer guess"}
        assert (await http.post("/api/pulse/backup", headers=wrong)).status_code == 403
        monkeypatch.setenv("PULSE_ADMIN_TOKEN", "")
        refused = await http.post("/api/pulse/backup", headers={"Authorization": "Bearer "})
    assert (refused.status_code, "PULSE_ADMIN_TOKEN" in refused.json()["detail"]) == (403, True)
    del box


@POSTGRES
async def test_c14_on_postgresql_the_api_names_the_servers_own_tools(
    box: Sandbox, monkeypatch: pytest.MonkeyPatch, logged: list[EventDict]
) -> None:
    """A worker starts all the same, makes no copies, and says so in the log."""
    monkeypatch.setenv("PULSE_ADMIN_TOKEN", "secret")
    monkeypatch.setenv("PULSE_BACKUP_FOLDER", "copies")
    async with client() as http:
        answer = await http.post("/api/pulse/backup", headers=ADMIN)
    assert answer.status_code == 409
    assert "pg_dump" in answer.json()["detail"]
    assert read_worker_settings().backup is None
    assert "PULSE_BACKUP_FOLDER does nothing on PostgreSQL: use pg_dump" in logged[-1]["event"]
    del box


@POSTGRES
@pytest.mark.slow
async def test_c14_pg_dump_while_writes_go_on_is_a_copy_of_one_instant(
    box: Sandbox, engine_url: str, tmp_path: Path
) -> None:
    """A job and its document are in the dump, or neither; writers go on meanwhile."""
    binaries, _ = _installation()
    parts = urlsplit(engine_url)
    host = dict(parse_qsl(parts.query))["host"]
    server = ["-h", host, "-U", "postgres"]
    dump = tmp_path / "pulse.dump"
    async with Writers() as writers:
        before = await found(lambda: _more_than(writers, 3))
        command = [str(Path(binaries) / "pg_dump"), *server, "-Fc", "-f", str(dump), parts.path[1:]]
        made = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=False)
        after = writers.written
    assert made.returncode == 0, made.stderr
    assert after > before
    restored = f"{parts.path[1:]}_restored"
    with psycopg.connect(f"postgresql://postgres@/postgres?host={host}", autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{restored}"'.encode())
    try:
        command = [str(Path(binaries) / "pg_restore"), *server, "-d", restored, str(dump)]
        put_back = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=False)
        assert put_back.returncode == 0, put_back.stderr
        with psycopg.connect(f"postgresql://postgres@/{restored}?host={host}") as copied:
            jobs = copied.execute("SELECT count(*) FROM perdure.job").fetchall()
            documents = copied.execute("SELECT count(*) FROM pulse_document").fetchall()
        assert jobs == documents
        assert jobs[0][0] >= before
    finally:
        with psycopg.connect(f"postgresql://postgres@/postgres?host={host}", autocommit=True) as connection:
            connection.execute(f'DROP DATABASE "{restored}" WITH (FORCE)'.encode())
    del box
