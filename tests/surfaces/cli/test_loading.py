"""From `module:app` to the app: what goes wrong is said in one line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.surfaces.conftest import run_cli

from perdure.errors import SettingsError
from perdure.surfaces.cli.exits import Exit
from perdure.surfaces.cli.loading import AppBroken, load_app

GOOD = "from perdure import App\napp = App()\nclass Box:\n    inner = app\nnumber = 7\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory with nothing of it left behind."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delenv("PERDURE_URL", raising=False)
    before = set(sys.modules)
    (tmp_path / "shop_jobs.py").write_text(GOOD)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_the_current_directory_is_in_reach() -> None:
    app = load_app("shop_jobs:app")
    assert load_app("shop_jobs:Box.inner") is app


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("shop_jobs", "write it as module:app"),
        ("shop_jobs:", "write it as module:app"),
        ("shop_jobs.py:app", "names no module 'shop_jobs.py'"),
        ("shop-jobs:app", "write it as module:app"),
        ("nowhere:app", "names no module 'nowhere'"),
        ("nowhere.deep:app", "names no module 'nowhere'"),
        ("shop_jobs:application", "module 'shop_jobs' has no 'application'; there is app"),
        ("shop_jobs:number", "is a int, not a perdure.App; there is app"),
        ("shop_jobs:Box.outer", "has no 'outer'"),
    ],
)
def test_a_wrong_name_is_explained(name: str, said: str) -> None:
    with pytest.raises(SettingsError, match=r"^APP ") as caught:
        load_app(name)
    assert said in str(caught.value)
    answer = run_cli("worker", name, "--json")
    assert (answer.code, answer.error["field"]) == (Exit.USAGE, "APP")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import nowhere_to_be_found\n", "No module named 'nowhere_to_be_found'"),
        ("x = 1\n1 / 0\n", "division by zero"),
        ("def (:\n", "SyntaxError"),
    ],
)
def test_a_module_that_fails_is_reported_with_its_place(folder: Path, code: str, said: str) -> None:
    (folder / "broken_jobs.py").write_text(code)
    with pytest.raises(AppBroken) as caught:
        load_app("broken_jobs:app")
    assert said in str(caught.value)
    assert f"{folder / 'broken_jobs.py'}, line" in str(caught.value)
    assert run_cli("worker", "broken_jobs:app").code == Exit.FAILED
