"""`perdure attention`: what needs a person, for people and for scripts."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.builders.jobs import enqueue, job_in
from tests.surfaces.conftest import Arrange, Cli

from perdure.domain.jobs.states import JobState
from perdure.operate.health.checkup import Checkup
from perdure.storage.operate.diagnosis import Finding
from perdure.surfaces.cli.exits import Exit


@pytest.fixture(autouse=True)
def _a_sound_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """Databases of tests do not sync to disk, which is a problem indeed."""

    async def fine(_: Checkup) -> list[Finding]:
        return []

    monkeypatch.setattr(Checkup, "examine_database", fine)


def test_a_database_without_needs_is_well(cli: Cli, arrange: Arrange[Any]) -> None:
    arrange(lambda store: store.now())
    answer = cli("attention")
    assert (answer.code, answer.out) == (Exit.OK, "✿ All is well: nothing needs a person.\n")
    assert cli("attention", "--json").json == {"needs": []}


def test_needs_are_reported_with_a_command_to_begin_with(cli: Cli, arrange: Arrange[Any]) -> None:
    arrange(lambda store: job_in(JobState.DEAD, store, kind="charge\x1b[31m"))
    arrange(lambda store: enqueue(store, queue="reports"))
    answer = cli("attention")
    assert "Queue reports has 1 job and no worker" in answer.out
    assert "perdure worker your_module:app --queues reports" in answer.out
    assert "1 charge" in answer.out
    assert "\x1b[31m" not in answer.out
    needs = cli("attention", "--json").json["needs"]
    assert [need["about"] for need in needs] == ["dead letters", "queue"]
    assert {need["severity"] for need in needs} == {"problem"}
