"""The pytest plugin serves projects of every kind, and costs those that do not use it nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from tests.testing.projects import PATIENCE, run_pytest

JOBS = """
from perdure import App, Retry

app = App("sqlite:////no/such/folder/jobs.db")

@app.job(retry=Retry.none())
async def divide(a: int, b: int) -> int:
    return a // b
"""
SYNC_TESTS = """
import pytest
from jobs import divide

def test_sync(perdure_sandbox):
    handle = divide.enqueue_sync(6, 3)
    perdure_sandbox.assert_enqueued(divide, 6)
    assert perdure_sandbox.result_sync(handle) == 2

@pytest.mark.perdure(inline=True)
def test_inline(perdure_sandbox):
    with pytest.raises(ZeroDivisionError):
        divide.enqueue_sync(6, 0)

@pytest.mark.perdure(inline=True)
class TestMarkers:
    @pytest.mark.perdure(raising=False)
    def test_the_closest_marker_has_the_last_word(self, perdure_sandbox):
        divide.enqueue_sync(6, 0)
        assert len(perdure_sandbox.dead_sync()) == 1
"""
ASYNC_TESTS = """
import pytest
from jobs import divide

{mark}
async def test_async(perdure_sandbox):
    handle = await divide.enqueue(6, 3)
    assert (await perdure_sandbox.drain()).succeeded == 1
    assert await handle.result() == 2

{mark}
@pytest.mark.perdure(inline=True)
async def test_inline(perdure_sandbox):
    with pytest.raises(ZeroDivisionError):
        await divide.enqueue(6, 0)
"""


def project(folder: Path, files: dict[str, str]) -> Path:
    """Write a project."""
    for name, text in files.items():
        (folder / name).write_text(dedent(text), encoding="utf-8")
    return folder


@pytest.mark.parametrize(("mode", "mark"), [("auto", ""), ("strict", "@pytest.mark.asyncio")])
def test_async_tests_run_under_pytest_asyncio(tmp_path: Path, mode: str, mark: str) -> None:
    ini = f"""
        [pytest]
        pythonpath = .
        asyncio_mode = {mode}
        asyncio_default_fixture_loop_scope = function
        perdure_app = jobs:app
        addopts = --strict-markers --strict-config
    """
    tests = {"test_async.py": ASYNC_TESTS.format(mark=mark), "test_sync.py": SYNC_TESTS}
    counts, said = run_pytest(project(tmp_path, {"pytest.ini": ini, "jobs.py": JOBS} | tests))
    assert counts == {"passed": 5}, said


def test_a_project_without_pytest_asyncio_names_its_app_by_a_fixture(tmp_path: Path) -> None:
    conftest = """
        import pytest
        from jobs import app

        @pytest.fixture
        def perdure_app():
            return app
    """
    files = {"pytest.ini": "[pytest]\npythonpath = .\n", "conftest.py": conftest, "jobs.py": JOBS}
    counts, said = run_pytest(project(tmp_path, files | {"test_sync.py": SYNC_TESTS}), "-p", "no:asyncio")
    assert counts == {"passed": 3}, said


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("", "which app?"),
        ("perdure_app = nowhere:app", "perdure_app = 'nowhere:app' cannot be found: No module named 'nowhere'"),
        ("perdure_app = jobs:apple", "perdure_app = 'jobs:apple' cannot be found"),
        ("perdure_app = jobs:divide", "perdure_app = 'jobs:divide' is not a perdure App, but <job divide>"),
    ],
)
def test_an_app_that_cannot_be_found_is_named(tmp_path: Path, setting: str, complaint: str) -> None:
    test = "def test_it(perdure_sandbox): ..."
    files = {"pytest.ini": f"[pytest]\npythonpath = .\n{setting}\n", "jobs.py": JOBS, "test_it.py": test}
    counts, said = run_pytest(project(tmp_path, files), "-p", "no:asyncio")
    assert counts in ({"error": 1}, {"errors": 1}), said
    assert complaint in said


def test_a_misspelt_option_of_the_marker_is_refused(tmp_path: Path) -> None:
    test = """
        import pytest

        @pytest.mark.perdure(inlin=True)
        def test_it(perdure_sandbox): ...
    """
    files = {"pytest.ini": "[pytest]\npythonpath = .\nperdure_app = jobs:app\n", "jobs.py": JOBS, "test_it.py": test}
    counts, said = run_pytest(project(tmp_path, files), "-p", "no:asyncio")
    assert counts == {"error": 1}, said
    assert "unexpected keyword argument 'inlin'" in said


def test_loading_the_plugin_loads_no_engine_and_no_sandbox() -> None:
    program = "import sys, perdure.testing.plugin; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE, check=True)
    loaded = set(ran.stdout.split())
    assert "perdure.testing.plugin" in loaded
    assert not loaded & {"apsw", "sqlite3", "psycopg", "perdure.engines.sqlite", "perdure.testing.sandbox"}
