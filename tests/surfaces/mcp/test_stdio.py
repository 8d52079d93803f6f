"""`perdure mcp` as a client starts it: a real process, on both engines."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.types import Implementation
from tests.support.builders.jobs import job_in, state_of
from tests.surfaces.mcp.conftest import LEGACY, Person, ask, refused

from perdure.domain.jobs.states import JobState
from perdure.operate.desk import Desk
from perdure.storage.port import Store

pytestmark = pytest.mark.slow
WHY = "the mail server is back"
APP = """
from perdure import App, Retry
app = App({url!r})
@app.job(retry=Retry(attempts=4))
async def greet(name: str) -> None: ...
"""


def started(*words: str, cwd: Path | None = None, **more: Any) -> Client:
    """A client that starts the server with these words."""
    server = StdioServerParameters(command=sys.executable, args=["-m", "perdure", "mcp", *words], cwd=cwd)
    return Client(
        server, client_info=Implementation(name="Claude Desktop", version="1"), read_timeout_seconds=60, **more
    )


@pytest.mark.parametrize("mode", ["auto", LEGACY])
async def test_an_agent_looks_and_acts_over_stdio(real_time_store: Store, engine_url: str, mode: str) -> None:
    store, person = real_time_store, Person()
    dead = await job_in(JobState.DEAD, store)
    async with started("--url", engine_url, "--allow-commands", mode=mode, elicitation_callback=person) as client:
        assert "untrusted_text" in (client.instructions or "")
        assert (await ask(client, "overview"))["queues"]
        planned = await ask(client, "requeue", jobs=[dead], why=WHY)
        assert await state_of(store, dead) is JobState.DEAD
        await ask(client, "requeue", jobs=[dead], why=WHY, dry_run_id=planned["dry_run_id"])
    assert await state_of(store, dead) is JobState.READY
    assert len(person.asked) == 1
    [entry] = (await Desk(store, "test").audit(action="requeue")).entries
    assert entry.actor.startswith("mcp:Claude-Desktop@")
    assert (entry.source, entry.why) == ("mcp stdio", WHY)


async def test_a_dry_run_holds_in_another_process(real_time_store: Store, engine_url: str) -> None:
    words = ("--url", engine_url, "--allow-commands")
    async with started(*words) as first, started(*words) as second:
        planned = await ask(first, "pause", queue="mail", why=WHY)
        call = {"queue": "mail", "why": WHY, "dry_run_id": planned["dry_run_id"]}
        await ask(second, "pause", **call)
        assert "was used already" in await refused(first, "pause", **call)
    assert len(await Desk(real_time_store, "test").holds.pauses()) == 1


async def test_with_an_app_retries_are_previewed_and_without_commands_it_only_reads(
    real_time_store: Store, engine_url: str, tmp_path: Path
) -> None:
    (tmp_path / "jobs.py").write_text(APP.format(url=engine_url))
    async with started("jobs:app", cwd=tmp_path) as client:
        assert len((await ask(client, "preview_retries", kind="greet"))["attempts"]) == 4
        assert "requeue" not in {tool.name for tool in (await client.list_tools()).tools}


@pytest.mark.usefixtures("real_time_store")
def test_what_the_modules_of_an_app_print_does_not_reach_the_client(engine_url: str, tmp_path: Path) -> None:
    (tmp_path / "jobs.py").write_text(f"print('hello from the app'){APP.format(url=engine_url)}")
    done = subprocess.run(
        [sys.executable, "-m", "perdure", "mcp", "jobs:app"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "hello from the app" in done.stderr


@pytest.fixture
def without_mcp(tmp_path: Path) -> dict[str, str]:
    """An environment in which the SDK cannot be imported."""
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['mcp'] = None\n")
    return {"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin"}


def test_a_missing_extra_is_named(without_mcp: dict[str, str], tmp_path: Path) -> None:
    code = (
        "from perdure.surfaces.cli import main; import sys; "
        f"sys.argv = ['perdure', 'mcp', '--url', 'sqlite:///{tmp_path}/none.db']; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=without_mcp, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode != 0
    assert "pip install 'perdure[mcp]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_database_is_reported_on_stderr_and_stdout_stays_empty(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "perdure", "mcp", "--url", f"sqlite:///{tmp_path}/none.db"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode != 0
    assert "none.db" in done.stderr
    assert done.stdout == ""


def test_the_sdk_is_loaded_only_where_it_is_used() -> None:
    code = (
        "import sys, perdure, perdure.mcp, perdure.desk, perdure.surfaces.cli.commands, perdure.surfaces.server.site; "
        "print([name for name in ('mcp', 'pydantic', 'mcp_types') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
