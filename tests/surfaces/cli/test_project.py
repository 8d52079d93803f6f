"""`[tool.perdure]`: what a project says once, every command knows, from any of its folders."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.surfaces.conftest import run_cli

from perdure import App, SettingsError
from perdure.surfaces.cli.exits import Exit
from perdure.surfaces.cli.loading import AppBroken, load_app
from perdure.surfaces.cli.project import database_url, project

SHOP = """
from perdure import App

app = App(include="shop_parts.*")

def make() -> App:
    return app

def broken() -> App:
    raise LookupError("no settings")
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project's folder, with nothing of it left behind."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PERDURE_URL", "")
    monkeypatch.delenv("PERDURE_URL")
    before = set(sys.modules)
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "shop_parts" / "deep").mkdir(parents=True)
    for name, job in (("__init__", ""), ("mail", "mail"), ("deep/__init__", ""), ("deep/bills", "bills")):
        declared = f"from shop import app\n\n@app.job\ndef {job}() -> None: ...\n" if job else ""
        (tmp_path / "shop_parts" / f"{name}.py").write_text(declared)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def says(folder: Path, *lines: str) -> None:
    (folder / "pyproject.toml").write_text("\n".join(["[tool.perdure]", *lines]))


def test_every_command_finds_the_projects_database_from_any_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    says(folder, 'url = "sqlite:///data.db"')
    monkeypatch.chdir(folder / "shop_parts" / "deep")
    assert database_url(None) == f"sqlite:///{folder}/data.db"
    assert run_cli("migrate").code == Exit.OK
    assert (folder / "data.db").exists()
    assert run_cli("jobs", "list", "--json").code == Exit.OK


def test_an_option_comes_before_the_environment_and_that_before_the_project(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    says(folder, 'url = "sqlite:///data.db"')
    monkeypatch.setenv("PERDURE_URL", "sqlite:///of-the-environment.db")
    assert database_url(None) == "sqlite:///of-the-environment.db"
    assert database_url("sqlite:///given.db") == "sqlite:///given.db"


def test_the_projects_app_is_loaded_with_the_projects_database_and_all_that_it_includes(folder: Path) -> None:
    says(folder, 'app = "shop:app"', 'url = "sqlite:///data.db"')
    app = load_app(None)
    assert app.url == f"sqlite:///{folder}/data.db"
    assert sorted(app.kinds) == ["bills", "mail"]


def test_enqueue_says_where_it_puts_a_job_if_that_is_not_what_other_commands_look_at(folder: Path) -> None:
    says(folder, 'app = "stall:app"', 'url = "sqlite:///data.db"')
    stall = "from perdure import App\napp = App('sqlite:///own.db')\n@app.job\ndef work() -> None: ...\n"
    (folder / "stall.py").write_text(stall)
    told = run_cli("enqueue", "work", env={"PERDURE_APP": None})
    assert told.code == Exit.OK
    said = " ".join(told.err.split())
    assert f"app=sqlite:///own.db commands=sqlite:///{folder}/data.db" in said
    assert f"a new, empty database file is made: is this the right folder? file={folder}/own.db" in said
    assert run_cli("enqueue", "work", "--json", env={"PERDURE_APP": None}).err == ""


@pytest.mark.parametrize("name", ["shop:make", "shop:make()"])
def test_a_factory_will_do(name: str) -> None:
    assert isinstance(load_app(name), App)


def test_a_factory_that_fails_is_reported_with_its_place(folder: Path) -> None:
    with pytest.raises(AppBroken, match=r"the factory 'shop:broken' failed: LookupError: no settings \(.*shop\.py"):
        load_app("shop:broken")


def test_an_included_module_that_fails_is_reported_with_its_place(folder: Path) -> None:
    (folder / "shop_parts" / "mail.py").write_text("1 / 0\n")
    with pytest.raises(AppBroken, match=r"includes cannot be imported: ZeroDivisionError.*mail\.py, line 1"):
        load_app("shop:app")


def test_without_any_app_it_is_said_where_to_name_one() -> None:
    answer = run_cli("worker", "--json", env={"PERDURE_APP": None})
    assert (answer.code, answer.error["field"]) == (Exit.USAGE, "APP")
    assert "PERDURE_APP" in answer.error["error"]
    assert "[tool.perdure]" in answer.error["error"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('data = "x"', "data in [tool.perdure]"),
        ("url = 7", "url in [tool.perdure]"),
        ('app = ""', "app in [tool.perdure]"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_file(folder: Path, line: str, problem: str) -> None:
    says(folder, line)
    with pytest.raises(SettingsError) as refused:
        project()
    assert problem in str(refused.value)
    assert str(folder / "pyproject.toml") in str(refused.value)


def test_a_file_that_cannot_be_read_is_reported(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[tool.perdure\n")
    with pytest.raises(SettingsError, match=r"pyproject\.toml cannot be read"):
        project()


@pytest.mark.parametrize("include", ["shop-parts", "shop.*.parts", ["shop", 7]])
def test_an_include_that_names_no_module_is_refused(include: str) -> None:
    with pytest.raises(SettingsError, match="include must be names of modules"):
        App("sqlite:///unused.db", include=include)


def test_all_below_a_plain_module_is_refused(folder: Path) -> None:
    app = App("sqlite:///unused.db", include="shop_parts.mail.*")
    sys.path.insert(0, str(folder))
    with pytest.raises(SettingsError, match="is a module, not a package"):
        app.import_included()
