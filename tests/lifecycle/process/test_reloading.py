"""`--reload`: a worker that is started anew when a file changes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.surfaces.conftest import run_cli

from perdure.lifecycle.process.reloading import snapshot
from perdure.surfaces.cli.exits import Exit

SHOP = """
from pathlib import Path

from perdure import App

app = App("sqlite:///shop.db")


@app.lifespan
def told():
    Path("{word}").touch()
    yield
    Path("{word}-closed").touch()
"""


@pytest.fixture
def reloading(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """`perdure worker shop:app --reload` in a folder of its own."""
    (tmp_path / "shop.py").write_text(SHOP.format(word="one"))
    process = subprocess.Popen(
        [sys.executable, "-m", "perdure", "worker", "shop:app", "--reload"],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if not name.startswith("PERDURE_")},
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process
    if process.poll() is None:
        process.kill()
    process.communicate()


def until_there(file: Path, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while not file.exists():
        assert process.poll() is None, "the parent has ended"
        assert time.monotonic() < deadline, f"no {file.name}"
        time.sleep(0.05)


def test_a_change_starts_the_worker_again_also_after_a_mistake(
    tmp_path: Path, reloading: subprocess.Popen[str]
) -> None:
    until_there(tmp_path / "one", reloading)
    (tmp_path / "shop.py").write_text("this is no Python")
    until_there(tmp_path / "one-closed", reloading)
    # A text of another length: Python takes a file of the same length and second for the one that it has compiled.
    (tmp_path / "shop.py").write_text(SHOP.format(word="three"))
    until_there(tmp_path / "three", reloading)
    reloading.send_signal(signal.SIGINT)
    _, told = reloading.communicate(timeout=60)
    assert reloading.returncode == Exit.OK
    assert (tmp_path / "three-closed").exists(), "closed in good order"
    assert "shop.py changed" in told


def test_only_python_files_of_the_project_are_watched(tmp_path: Path) -> None:
    for name in ("a.py", "deep/b.py", "c.txt", ".git/d.py", "env/pyvenv.cfg", "env/e.py", "__pycache__/f.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    before = snapshot(tmp_path)
    assert {Path(path).relative_to(tmp_path).as_posix() for path in before} == {"a.py", "deep/b.py"}
    (tmp_path / "deep/b.py").write_text("22")
    assert snapshot(tmp_path) != before


def test_several_processes_are_refused() -> None:
    answer = run_cli("worker", "shop:app", "--reload", "--processes", "2")
    assert (answer.code, "--reload and --processes" in answer.err) == (Exit.USAGE, True)
