"""`perdure workers` and `perdure quiet`: who works, and who is asked to claim nothing more, on both engines."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.builders.jobs import employ, start
from tests.support.databases.behind import query
from tests.surfaces.conftest import Arrange, Cli, run_cli

from perdure.domain.jobs.ids import WorkerId
from perdure.domain.worker import Phase
from perdure.storage.port import Store
from perdure.surfaces.cli.exits import Exit


@pytest.fixture
def fleet(arrange: Arrange[list[WorkerId]]) -> list[WorkerId]:
    """Two living workers, mail and reports, and a dead one, gone."""

    async def gather(store: Store) -> list[WorkerId]:
        ids = [await employ(store, name=name, queues=(name,)) for name in ("mail", "reports", "gone")]
        await store.retire(ids[2])
        return ids

    return arrange(gather)


def wants_quiet(arrange: Arrange[Any], worker_id: WorkerId) -> bool:
    answer: bool = arrange(lambda store: store.wants_quiet(worker_id))
    return answer


def test_workers_lists_the_living(cli: Cli, engine_url: str, fleet: list[WorkerId]) -> None:
    answer = run_cli("workers", env={"PERDURE_URL": engine_url, "COLUMNS": "100"})
    assert answer.code == Exit.OK
    for piece in ("mail", "reports", "open", "0/10", "0.1.0", "Last beat"):
        assert piece in answer.out
    assert "gone" not in answer.out
    assert len(answer.out.splitlines()) == 3
    assert [worker["name"] for worker in cli("workers", "--json").json["workers"]] == ["mail", "reports"]


def test_workers_lists_the_dead_when_asked(cli: Cli, arrange: Arrange[Any]) -> None:
    async def die_at_work(store: Store) -> None:
        await start(store)
        await store.bury_gone("host-1:boot-1", lambda _: False)

    arrange(die_at_work)
    assert cli("workers").out == "No running workers.\n"
    assert cli("workers", "--json").json == {"workers": []}
    listed = cli("workers", "--all").out
    assert "worker-1" in listed
    assert "dead" in listed


def test_a_worker_that_closed_in_good_order_is_not_called_dead(cli: Cli, arrange: Arrange[Any]) -> None:
    async def close_at_work(store: Store) -> None:
        await start(store)
        [worker] = await store.workers()
        await store.retire(worker.id)

    arrange(close_at_work)
    assert cli("workers").out == "No running workers.\n"
    listed = cli("workers", "--all").out
    assert "closed" in listed
    assert "dead" not in listed
    assert cli("workers", "--all", "--json").json["workers"][0]["phase"] == "closed"


def test_quiet_by_name_and_by_id(cli: Cli, arrange: Arrange[Any], engine_url: str, fleet: list[WorkerId]) -> None:
    answer = cli("quiet", "mail", "--json")
    assert (answer.code, answer.json["workers"]) == (Exit.OK, [{"id": fleet[0], "name": "mail"}])
    assert [wants_quiet(arrange, worker_id) for worker_id in fleet[:2]] == [True, False]
    assert "open → quiet" in run_cli("workers", env={"PERDURE_URL": engine_url, "COLUMNS": "100"}).out
    arrange(lambda store: store.report(fleet[0], Phase.QUIET))
    assert "quiet" in cli("workers").out
    assert "1 worker told to stop claiming" in cli("quiet", str(fleet[1])).out
    assert wants_quiet(arrange, fleet[1])
    assert "told to claim again" in cli("quiet", "mail", str(fleet[1]), "--off").out
    assert [wants_quiet(arrange, worker_id) for worker_id in fleet[:2]] == [False, False]
    actors = [actor for (actor,) in query(engine_url, "SELECT actor FROM {audit}")]
    assert actors
    assert all(actor.startswith("cli:") for actor in actors)


def test_a_dry_run_names_the_workers_and_shows_none(
    cli: Cli, arrange: Arrange[Any], engine_url: str, fleet: list[WorkerId]
) -> None:
    said = cli("quiet", "--all", "--dry-run").out
    assert said.startswith("2 workers would be told to stop claiming:\n")
    assert all(name in said for name in ("mail", "reports"))
    off = cli("quiet", "mail", "--off", "--dry-run", "--json").json
    assert off == {"action": "told to claim again", "dry_run": True, "workers": [{"id": fleet[0], "name": "mail"}]}
    assert not any(wants_quiet(arrange, worker_id) for worker_id in fleet[:2])
    assert query(engine_url, "SELECT actor FROM {audit}") == []


def test_quiet_all_means_the_living(cli: Cli, fleet: list[WorkerId]) -> None:
    named = [worker["name"] for worker in cli("quiet", "--all", "--json").json["workers"]]
    assert sorted(named) == ["mail", "reports"]


def test_without_a_worker_the_living_are_listed(cli: Cli, fleet: list[WorkerId]) -> None:
    answer = cli("quiet", "--json")
    assert (answer.code, answer.error["field"]) == (Exit.USAGE, "WORKER")
    for piece in (f"mail (id {fleet[0]})", f"reports (id {fleet[1]})", "--all"):
        assert piece in answer.error["error"]
    assert "gone" not in answer.error["error"]


def test_names_and_all_exclude_each_other(cli: Cli, fleet: list[WorkerId]) -> None:
    assert cli("quiet", "mail", "--all", "--json").error["field"] == "WORKER"


@pytest.mark.parametrize("name", ["nobody", "gone"])
def test_a_worker_that_does_not_live_is_named_and_nothing_is_done(
    cli: Cli, arrange: Arrange[Any], fleet: list[WorkerId], name: str
) -> None:
    answer = cli("quiet", "mail", name, "--json")
    assert answer.code == Exit.NOT_FOUND
    assert name in answer.error["error"]
    assert not wants_quiet(arrange, fleet[0])


def test_without_any_worker_nothing_is_asked(cli: Cli, arrange: Arrange[None]) -> None:
    arrange(lambda store: store.check_schema())
    assert cli("workers").out == "No running workers.\n"
    assert cli("quiet", "--all").code == Exit.OK
    assert "no running workers" in cli("quiet").err


def test_hostile_names_cannot_write_to_the_terminal(cli: Cli, arrange: Arrange[Any]) -> None:
    nasty = "[red]w\x1b]0;owned\x07\x9b2J\u202e\r\nforged"
    arrange(lambda store: employ(store, name=nasty, queues=(nasty,), version=nasty))
    for words in (("workers",), ("quiet",), ("quiet", "--all"), ("quiet", nasty, "--off")):
        for answer in (cli(*words), cli(*words, "--json")):
            assert not set("\x1b\x07\x9b\u202e\r") & set(answer.out + answer.err)
            assert "\nforged" not in answer.out + answer.err
