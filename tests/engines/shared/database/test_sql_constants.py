"""A rule that both engines share is written once: their SQL takes its spans, limits and texts from the code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from importlib.resources import files
from pathlib import Path

import pytest

from perdure.engines.postgres.database.naming import Naming
from perdure.engines.shared.database import sql_constants
from perdure.engines.shared.database.sql_constants import CONSTANTS, constant
from perdure.engines.sqlite.database.database import load

ENGINES = ("postgres", "sqlite")
COMMENT = re.compile(r"--.*$", re.MULTILINE)
SLOT = re.compile(r"\{([A-Z_]+)\}")
OF_ONE_ENGINE = {  # PostgreSQL counts throttle spans in microseconds
    "postgres/sql/flows/throttle.sql": {"interval '1 microsecond'"},
}
SPAN = re.compile(r"interval '[^0'][^']*'|interval '0\.[^']*'")


def sources(engine: str) -> Iterator[tuple[str, str]]:
    """The SQL files of an engine without comments, but not its schema, which is a record of what was released."""
    root = Path(str(files("perdure.engines")))
    for path in sorted((root / engine / "sql").rglob("*.sql")):
        if "migrations" not in path.parts and path.name != "schema.sql":
            yield path.relative_to(root).as_posix(), COMMENT.sub("", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("engine", ENGINES)
def test_sql_takes_every_text_that_is_a_reason_from_the_code(engine: str) -> None:
    """Texts of several words only: a single word may be a state, or a word of SQL."""
    texts = {text for text in CONSTANTS.values() if isinstance(text, str) and " " in text.strip()}
    found = [(file, text) for file, sql in sources(engine) for text in texts if f"'{text}'" in sql]
    assert found == []


def test_sql_of_postgresql_takes_every_span_of_time_from_the_code() -> None:
    for file, sql in sources("postgres"):
        assert set(SPAN.findall(sql)) <= OF_ONE_ENGINE.get(file, set()), file


def test_sql_of_sqlite_takes_every_span_of_time_from_the_code() -> None:
    """A second, with which times are written as text, is the one number of this size."""
    for file, sql in sources("sqlite"):
        assert set(re.findall(r"\b\d{6,}\b", sql)) <= {"1000000"}, file


@pytest.mark.parametrize("name", sorted(name for name in CONSTANTS if not name.startswith("REASON_")))
def test_each_constant_is_used(name: str) -> None:
    assert any(name in SLOT.findall(sql) for engine in ENGINES for _, sql in sources(engine))


def test_each_engine_writes_a_constant_in_its_own_dialect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sql_constants, "CONSTANTS", {**CONSTANTS, "CLOCK_SLACK": timedelta(days=2), "REASON_ON_HOLD": "ada's"}
    )
    assert constant("REASON_ON_HOLD", str) == "'ada''s'"
    ours = Naming("s1", "own_").statements("flows/throttle.sql")["take"]
    assert "interval '172800000000 microseconds'" in ours
    assert ":now + 172800000000" in load("flows/throttle.sql", "own_")["taken"]


def test_a_slot_in_capitals_without_a_constant_is_no_table() -> None:
    with pytest.raises(KeyError, match="WRITTEN_WRONG"):
        constant("WRITTEN_WRONG", str)
