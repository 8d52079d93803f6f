"""`--search`, `--where`, `--group` and `perdure dead groups`, for people and for scripts, on both engines."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.builders.jobs import HOUR, enqueue, job_in, numbered_id
from tests.surfaces.conftest import Arrange, Cli, run_cli

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import JobState
from perdure.storage.port import Store
from perdure.surfaces.cli.completion import complete_group, complete_search
from perdure.surfaces.cli.exits import Exit


@pytest.fixture
def dead(arrange: Arrange[JobId]) -> JobId:
    """A dead letter."""
    return arrange(lambda store: job_in(JobState.DEAD, store))


def test_groups_for_people_and_scripts(cli: Cli, dead: JobId, engine_url: str) -> None:
    [group] = cli("dead", "groups", "--json").json["groups"]
    assert (group["jobs"], group["newest"], group["message"], len(group["trend"])) == (1, dead, "no such host", 24)
    narrow = cli("dead", "groups")
    assert narrow.code == Exit.OK
    assert f"{group['fingerprint']}  1 dead  greet  last" in narrow.out
    assert "  builtins.ValueError: no such host" in narrow.out
    wide = run_cli("dead", "groups", "--url", engine_url, env={"COLUMNS": "140"})
    assert "·······················█" in wide.out
    assert cli("dead", "groups", "--kind", "other").out.startswith("No dead letters.")


def test_the_jobs_of_a_group_are_listed_and_requeued(cli: Cli, dead: JobId) -> None:
    [group] = cli("dead", "groups", "--json").json["groups"]
    chosen = ("--group", group["fingerprint"])
    assert [job["id"] for job in cli("dead", "list", *chosen, "--json").json["jobs"]] == [dead]
    assert cli("dead", "requeue", *chosen, "--yes").code == Exit.OK
    assert cli("dead", "list", *chosen, "--json").json["jobs"] == []


def test_a_list_that_ends_early_says_how_far_it_looked(
    cli: Cli, arrange: Arrange[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fill(store: Store) -> None:
        for number in range(9):
            kind = "rare" if number == 0 else "common"
            await enqueue(store, id=numbered_id(number), kind=kind, delay=HOUR)

    arrange(fill)
    monkeypatch.setattr("perdure.operate.desk_base._ROWS_PER_LIST", 4)
    first = cli("jobs", "list", "--kind", "rare")
    assert "No jobs so far." in first.out
    assert "Searched back to jobs made" in first.out
    before = first.out.split("--before ")[1].split()[0]
    page = cli("jobs", "list", "--kind", "rare", "--before", before, "--json").json
    while page["searched_to"] is not None:
        page = cli("jobs", "list", "--kind", "rare", "--before", page["next"], "--json").json
    assert [job["id"] for job in page["jobs"]] == [numbered_id(0)]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--search", "stat:dead"], "does not understand stat:dead"),
        (["--where", "arg.x=1"], "--where does not understand arg.x=1"),
        (["--kind", "a", "--search", "kind:b"], "both give kind: give it once"),
        (["--search", 'args.x="'], "a quote that is not closed"),
    ],
)
def test_a_search_that_makes_no_sense_is_refused(cli: Cli, dead: JobId, options: list[str], said: str) -> None:
    answer = cli("jobs", "list", *options)
    assert answer.code == Exit.USAGE
    assert said in answer.err
    assert "error" in json.loads(cli("jobs", "list", *options, "--json").err)


def test_tab_completes_searches_and_groups(dead: JobId, engine_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_URL", engine_url)
    assert complete_search("state:dead kin") == ["state:dead kind:"]
    assert complete_search("args.n") == ["args.name="]
    assert len(complete_group("")) == 1
