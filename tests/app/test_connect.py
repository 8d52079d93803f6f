"""URLs of databases: what is wrong with one is told by name, and none of it tells a password."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure import App, SettingsError
from perdure.app.connect import store_for


@pytest.mark.parametrize("url", ["sqlite:///:memory:", "sqlite:///file::memory:", "sqlite:///:memory:?driver=sqlite3"])
def test_sqlite_in_memory_is_refused_and_leaves_no_file(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match=r"url names :memory:.*perdure\.testing"):
        App(url)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "url",
    [
        *("postgresql://ada:p#w@host/db", "postgresql://ada:p/w@host/db", "postgresql://ada:p@w@host/db"),
        *("postgresql://ada:pw@host:port/db", "sqlite:///c#/jobs.db"),
    ],
)
def test_a_url_that_is_cut_in_the_wrong_place_says_what_to_write_instead(url: str) -> None:
    """A worker would wait for ever for a server that is called by half of a password."""
    with pytest.raises(SettingsError, match=r"^url .*in a password write # as %23, / as %2F") as refused:
        App(url)
    assert "w@host" not in str(refused.value)


def test_a_bad_url_of_the_environment_is_called_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_URL", "jobs.db")
    with pytest.raises(SettingsError, match=r"^PERDURE_URL has no scheme: use sqlite:///"):
        App()


def test_several_servers_may_be_named() -> None:
    App("postgresql://ada:p%23w@one:5432,two:5433,three/db")


@pytest.mark.parametrize(
    "url", ["sqlite://ada:pw@host/jobs.db", "mysql://ada:pw@host/db", "postgresql://ada:pw@[host/db", "sqlite://a:pw@h"]
)
def test_a_url_that_is_refused_keeps_its_password(url: str) -> None:
    with pytest.raises(SettingsError, match="url") as refused:
        store_for(url)
    assert "pw" not in str(refused.value)


@pytest.mark.parametrize("scheme", ["postgresql+asyncpg", "postgres+psycopg", "sqlite+aiosqlite"])
def test_a_url_of_sqlalchemy_is_refused_with_how_to_write_it(scheme: str) -> None:
    database, _, driver = scheme.partition("+")
    with pytest.raises(SettingsError, match=rf"names the driver '{driver}'.*write {database}:// without \+{driver}"):
        App(f"{scheme}://ada@db/shop")
