"""The rules that both engines apply; PostgreSQL has the wait for a held key in its SQL too."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

from perdure.domain.jobs.states import FINAL
from perdure.policy.consequences import HELD_KEY_WAIT, PARENT_ENDED


def test_every_end_of_a_parent_has_its_text() -> None:
    assert set(PARENT_ENDED) == FINAL


def test_the_sql_waits_for_a_held_key_as_long_as_the_rule_says() -> None:
    folder = Path(str(files("perdure.engines.postgres"))) / "sql"
    texts = [file.read_text("utf-8") for file in folder.rglob("*.sql") if file.parent.name != "migrations"]
    waits = [int(seconds) for text in texts for seconds in re.findall(r"interval '(\d+) seconds'", text)]
    assert waits
    assert set(waits) == {HELD_KEY_WAIT.total_seconds()}
