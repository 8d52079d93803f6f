"""What is loaded when: a producer pays for no command line, and a command loads only what it needs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import perdure

NOT_FOR_A_LIST = [
    "starlette",
    "uvicorn",
    "jinja2",
    "textual",
    "prometheus_client",
    "opentelemetry",
    "psycopg",
    "structlog",
    "httpx",
    "apprise",
    "mcp",
    "sqlite3",
    "perdure.app.app",
    "perdure.worker",
    "perdure.enqueue",
    "perdure.upkeep",
    "perdure.engines.postgres",
    "perdure.surfaces.desk",
    "perdure.surfaces.api",
    "perdure.surfaces.top",
    "perdure.surfaces.server",
    "perdure.surfaces.cli.workers",
]


NOT_FOR_A_DESK = [
    "perdure.worker.worker",
    "perdure.worker.claiming",
    "perdure.surfaces.cli.workers.worker",
    "perdure.surfaces.top",
    "perdure.engines.postgres",
    "prometheus_client",
    "opentelemetry",
    "apprise",
    "mcp",
    "psycopg",
]


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


def test_import_perdure_loads_no_command_line_and_no_driver() -> None:
    heavy = ("typer", "rich", "apsw", "psycopg", "sqlite3", "structlog")
    code = f"import perdure, sys; perdure.App, perdure.Job; print([m for m in {heavy!r} if m in sys.modules])"
    assert run(code).strip() == "[]"


def test_every_public_name_is_found_and_kept() -> None:
    for name in perdure.__all__:
        assert getattr(perdure, name) is getattr(perdure, name)
    assert set(perdure.__all__) <= set(dir(perdure))
    with pytest.raises(AttributeError, match="no attribute 'Jbo'"):
        perdure.Jbo  # noqa: B018 - asked for by mistake


def test_the_entry_point_loads_typer_only_when_it_is_called() -> None:
    assert run("from perdure.surfaces.cli import main; import sys; print('typer' in sys.modules)").strip() == "False"


def test_the_command_line_loads_no_driver_before_it_needs_one() -> None:
    code = (
        "from perdure.surfaces.cli.commands import command_line; import sys; command_line(); "
        "print([m for m in ('apsw', 'psycopg') if m in sys.modules])"
    )
    assert run(code).strip() == "[]"


def test_a_list_of_jobs_loads_no_other_surface_and_no_other_engine(tmp_path: Path) -> None:
    """`perdure jobs list` starts often, in scripts too: what it does not need costs it nothing."""
    url = f"sqlite:///{tmp_path}/jobs.db"
    code = f"""
import json, sys
from perdure.surfaces.cli.commands import command_line
for words in (["migrate"], ["jobs", "list"]):
    try:
        command_line(words)([*words, "--url", {url!r}])
    except SystemExit as end:
        assert not end.code, end.code
print(json.dumps([name for name in {NOT_FOR_A_LIST!r} if name in sys.modules]))
"""
    assert json.loads(run(code).splitlines()[-1]) == []


def test_a_desk_loads_no_worker_and_no_metrics(tmp_path: Path) -> None:
    """It runs for weeks beside the workers: what it does not serve takes no memory."""
    url = f"sqlite:///{tmp_path}/jobs.db"
    code = f"""
import asyncio, sys
import perdure.surfaces.cli.serving.desk, perdure.surfaces.server.runner
from perdure.app.connect import store_for
from perdure.surfaces.server.site import Site

async def serve():
    store = store_for({url!r})
    await store.open()
    await store.migrate()
    await store.close()
    async with Site({url!r}):
        pass

asyncio.run(serve())
print([name for name in {NOT_FOR_A_DESK!r} if name in sys.modules])
"""
    assert run(code).splitlines()[-1] == "[]"
