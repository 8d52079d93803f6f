"""`perdure bulk`, and commands on a filter: counted, confirmed, done here or left to the workers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support.builders.jobs import a_job, claim_some, employ, ending_in
from tests.surfaces.conftest import Arrange, Cli

from perdure.domain.jobs.states import JobState
from perdure.operate.commands.actions import REQUEUE_DEAD
from perdure.operate.desk import Desk
from perdure.storage.operate.bulk import BulkView
from perdure.storage.port import Store
from perdure.storage.records import JobFilter
from perdure.surfaces.cli.bulk.orders import BulkOrder
from perdure.surfaces.cli.exits import Exit


async def three_dead(store: Store) -> None:
    await store.insert([a_job() for _ in range(3)])
    claims = await claim_some(store, await employ(store), 3)
    await store.acknowledge([ending_in(JobState.DEAD, claim) for claim in claims])


def test_a_command_on_a_filter_is_a_bulk_command(cli: Cli, arrange: Arrange[Any]) -> None:
    arrange(three_dead)
    foreseen = cli("dead", "requeue", "--all", "--dry-run")
    assert (foreseen.code, foreseen.out) == (Exit.OK, "3 jobs would be requeued.\n")
    done = cli("dead", "requeue", "--all", "--yes", "--why", "the bank is back")
    assert done.code == Exit.OK
    assert "3 jobs requeued." in done.out
    [view] = cli("bulk", "list", "--json").json["bulks"]
    assert (view["action"], view["state"], view["done"], view["why"]) == ("requeue", "done", 3, "the bank is back")
    assert f"perdure bulk show {view['id']}" in done.out
    for piece in ("requeue", view["id"], "done", "3/3"):
        assert piece in cli("bulk", "list").out
    page = cli("bulk", "show", view["id"])
    for piece in ("3 matched, 3 looked at", "the bank is back", "cli", "dead"):
        assert piece in page.out
    assert cli("bulk", "show", view["id"], "--json").json == {"bulk": view}
    entries = cli("audit", "list", "--bulk", view["id"], "--source", "cli", "--json").json["entries"]
    assert [entry["action"] for entry in entries if entry["job_id"] is None] == ["bulk.end", "bulk.requeue"]
    assert {(entry["why"], entry["source"]) for entry in entries} == {("the bank is back", "cli")}
    assert "state: dead → ready" in cli("audit", "list", "--action", "requeue").out


def test_a_detached_command_is_left_to_workers_and_can_be_stopped(cli: Cli, arrange: Arrange[Any]) -> None:
    arrange(three_dead)
    started = cli("dead", "purge", "--all", "--yes", "--detach", "--json").json["bulk"]
    assert (started["state"], started["seen"], started["jobs"]) == ("running", 0, 3)
    assert "started" in cli("jobs", "mark", "--all", "--as", "seen", "--yes", "--detach").out
    stopped = cli("bulk", "stop", started["id"], "--why", "wrong filter")
    assert (stopped.code, "0 jobs of 3 done" in stopped.out) == (Exit.OK, True)
    assert cli("bulk", "stop", started["id"]).code == Exit.CONFLICT
    assert len(cli("dead", "list", "--json").json["jobs"]) == 3


def test_a_filter_is_reported_in_words(cli: Cli, arrange: Arrange[Any]) -> None:
    arrange(three_dead)
    words = ("jobs", "mark", "--state", "ready", "--state", "dead", "--where", "args.user.id!=42", "--as", "seen")
    started = cli(*words, "--yes", "--detach", "--json").json["bulk"]
    assert "filter   state ready, dead; args.user.id!=42" in cli("bulk", "show", started["id"]).out


@pytest.mark.parametrize("words", [("show", "nope"), ("stop", "nope")])
def test_an_unknown_bulk_command_is_an_error(cli: Cli, arrange: Arrange[Any], words: tuple[str, ...]) -> None:
    arrange(three_dead)
    answer = cli("bulk", *words)
    assert (answer.code, answer.out) == (Exit.NOT_FOUND, "")
    assert "there is no bulk command 'nope'" in answer.err


def test_no_bulk_commands_is_said(cli: Cli, arrange: Arrange[Any]) -> None:
    arrange(three_dead)
    assert cli("bulk", "list").out == "No bulk commands.\n"


async def test_ctrl_c_says_how_far_it_is_and_how_to_stop_the_rest(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The bulk command is stored, and workers go on with it: silence would say that it ended."""

    async def interrupted(desk: Desk, bulk_id: str) -> AsyncIterator[BulkView]:
        yield await desk.bulk(bulk_id)
        raise asyncio.CancelledError  # as asyncio.run does on Ctrl-C

    await three_dead(store)
    desk = Desk(store, "ada")
    view = await desk.start_bulk(await desk.plan("requeue", JobFilter(states="dead")))
    order = BulkOrder(action=REQUEUE_DEAD, as_json=False, yes=True, dry_run=False, detach=False)
    monkeypatch.setattr(Desk, "work_on_bulk", interrupted)
    with pytest.raises(asyncio.CancelledError):
        await order._work(desk, view)
    said = capsys.readouterr().err
    assert "interrupted after 0 of 3 jobs; workers do the rest" in said
    assert f"perdure bulk stop {view.id}" in said


def test_older_bulk_commands_are_on_the_next_page(cli: Cli, arrange: Arrange[Any]) -> None:
    arrange(three_dead)
    for mark in ("a", "b", "c"):
        assert cli("jobs", "mark", "--as", mark, "--state", "dead", "--yes").code == Exit.OK
    first = cli("bulk", "list", "--limit", "2", "--json").json
    assert len(first["bulks"]) == 2
    rest = cli("bulk", "list", "--limit", "2", "--before", first["next"], "--json").json
    assert ([one["params"]["mark"] for one in rest["bulks"]], rest["next"]) == (["a"], None)
    assert cli("bulk", "list", "--limit", "2").out.splitlines()[-1] == f"More: --before {first['next']}"
    assert cli("bulk", "list", "--before", "gone").code == Exit.NOT_FOUND
