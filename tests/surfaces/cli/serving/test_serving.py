"""`perdure desk` and `perdure up` as real processes."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from tests.surfaces.conftest import run_cli

from perdure import App, SettingsError
from perdure.surfaces.server.runner import listening

PATIENCE = 60
JOBS = """
import asyncio
from perdure import App
app = App()
@app.job
async def nap(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "rested"
"""


@contextmanager
def started(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A process, and the address that it has told."""
    log = folder / "log"
    env = {**os.environ, "PERDURE_URL": f"sqlite:///{folder}/a.db"}
    with log.open("wb") as out:
        command = [sys.executable, "-m", "perdure", *words, "--port", "0", "--json"]
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=out, stderr=out)
    try:
        until = time.monotonic() + PATIENCE
        while not (found := re.search(r'"address": "([^"]+)"', log.read_text())):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.05)
        yield process, found[1]
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(JOBS)
    App(f"sqlite:///{tmp_path}/a.db").migrate_sync()
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("words", [("desk",), ("up", "shop:app")])
def test_it_serves_and_a_stop_does_not_wait_for_streams(folder: Path, words: tuple[str, ...]) -> None:
    with started(folder, *words, "--prefix", "/ops") as (process, address):
        assert address.endswith("/ops/")
        assert httpx.get(f"{address}healthz").json() == {"status": "ok"}
        assert httpx.get(f"{address}api/v1/about").json()["kinds"] == (["nap"] if words[0] == "up" else [])
        assert httpx.get(address).status_code == 200
        with httpx.stream("GET", f"{address}api/v1/live", timeout=PATIENCE) as stream:
            lines = stream.iter_lines()
            assert next(line for line in lines if line.startswith("event:")) == "event: overview"
            process.send_signal(signal.SIGTERM)
            before = time.monotonic()
            assert process.wait(PATIENCE) == 0
            assert time.monotonic() - before < 10
        assert "Traceback" not in (folder / "log").read_text()


@pytest.mark.slow
def test_up_shows_the_end_of_a_job_while_it_closes(folder: Path) -> None:
    with started(folder, "up", "shop:app") as (process, address):
        token = run_cli(
            "token",
            "create",
            "--name",
            "t",
            "--scope",
            "admin",
            "--json",
            env={"PERDURE_URL": f"sqlite:///{folder}/a.db"},
        )
        headers = {"authorization": f"Bearer {token.json['secret']}"}
        made = httpx.post(f"{address}api/v1/jobs", json={"kind": "nap", "args": {"seconds": 1.5}}, headers=headers)
        assert made.status_code == 201, made.text
        job = f"{address}api/v1/jobs/{made.json()['id']}"
        until = time.monotonic() + PATIENCE
        while httpx.get(job).json()["job"]["state"] != "running":
            assert time.monotonic() < until
        process.send_signal(signal.SIGTERM)
        assert httpx.get(job).status_code == 200
        assert process.wait(PATIENCE) == 0
    events = [json.loads(line)["event"] for line in (folder / "log").read_text().splitlines()]
    assert "❀ worker closed" in events


def test_an_address_that_others_reach_needs_a_token(folder: Path) -> None:
    answer = run_cli("desk", "--host", "0.0.0.0", "--port", "0", "--url", f"sqlite:///{folder}/a.db")  # noqa: S104
    assert (answer.code, "token" in answer.err) == (2, True)


def test_a_database_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    answer = run_cli("desk", "--port", "0", "--url", f"sqlite:///{tmp_path}/none.db", "--json")
    assert (answer.code, "no such file" in answer.error["error"]) == (1, True)


def test_a_port_in_use_is_refused_by_name_and_the_default_moves_on() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(SettingsError, match=r"port .* is in use"):
            listening("127.0.0.1", taken.getsockname()[1])
    first, second = listening("127.0.0.1", None), listening("127.0.0.1", None)
    assert first.getsockname()[1] < second.getsockname()[1]
    first.close()
    second.close()
    with pytest.raises(SettingsError, match="port"):
        listening("127.0.0.1", 99_999)
    with pytest.raises(SettingsError, match="host"):
        listening("203.0.113.1", 0)


def test_without_the_extra_the_error_names_it() -> None:
    code = "import sys; sys.modules['starlette'] = None\nfrom perdure.desk import asgi\nasgi('sqlite:///x.db')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'perdure[web]'" in done.stderr
