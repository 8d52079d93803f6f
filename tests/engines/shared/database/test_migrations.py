"""The migrations of an engine, as they are loaded from its folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure.engines.shared.database import migrations
from perdure.engines.shared.database.migrations import load_migrations
from perdure.errors import SchemaError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the migrations that are loaded."""
    made = tmp_path / "sql" / "migrations"
    made.mkdir(parents=True)
    monkeypatch.setattr(migrations, "files", lambda _: tmp_path)
    return made


def test_migrations_come_in_the_order_of_their_numbers(folder: Path) -> None:
    (folder / "0002_time.sql").write_text("-- release: 1\nSELECT 2;")
    (folder / "0001_first.sql").write_text("-- release: 1\nSELECT 1;")
    assert [each.name for each in load_migrations("an.engine")] == ["0001_first", "0002_time"]


def test_two_migrations_with_one_number_are_refused(folder: Path) -> None:
    (folder / "0001_first.sql").write_text("-- release: 1\nSELECT 1;")
    (folder / "0001_also.sql").write_text("-- release: 1\nSELECT 2;")
    with pytest.raises(SchemaError, match="0001_also and 0001_first have the same number: renumber"):
        load_migrations("an.engine")
