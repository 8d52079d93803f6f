"""`perdure emit`, `perdure approve` and `perdure approvals`: what jobs wait for comes by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.builders.jobs import HOUR, apply, job_in, start, state_of
from tests.support.databases.behind import query
from tests.surfaces.cli.terminal.test_asking import at_a_terminal
from tests.surfaces.conftest import Arrange, Cli

from perdure.domain.flows.approval import approval_event
from perdure.domain.flows.flow import Awaits, Emission, StepKind, StepRecord, StepState, StepWrite
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import JobId, new_job_id
from perdure.domain.jobs.states import JobState, Reason
from perdure.flows.journal import NAME_LIMIT_CHARACTERS
from perdure.storage.port import Store
from perdure.surfaces.cli.exits import Exit

NASTY = "[red]k\x1b]0;owned\x07\x9b2J\u202e\r\nforged"


async def waiting(store: Store, event: str = "paid:42", **changes: Any) -> JobId:
    """A job that waits for an event for an hour."""
    claim = await start(store, **changes)
    await apply(store, transition.parked(claim, Reason.AWAITING_EVENT, HOUR, Awaits(event=event), None))
    return claim.job_id


async def asking(store: Store, name: str = "deploy", **changes: Any) -> JobId:
    """A job that asks a question, as its handler would."""
    claim = await start(store, **changes)
    step = StepRecord(key=f"approval:{name}", kind=StepKind.EVENT, state=StepState.BEGUN, begun_at=await store.now())
    assert await store.save_steps([StepWrite(claim, step)]) == [True]
    awaits = Awaits(event=approval_event(claim.job_id, name))
    await apply(store, transition.parked(claim, Reason.AWAITING_EVENT, None, awaits, None))
    return claim.job_id


def test_the_first_emission_wakes_and_is_kept(cli: Cli, arrange: Arrange[Any], engine_url: str) -> None:
    job_id = arrange(waiting)
    answer = cli("emit", "paid:42", "--payload", '{"sum": 3}')
    assert (answer.code, answer.out) == (Exit.OK, "paid:42 emitted: 1 job woken.\n")
    assert arrange(lambda store: state_of(store, job_id)) is JobState.READY
    again = cli("emit", "paid:42", "--payload", "7", "--json")
    assert (again.code, again.json["is_first"], again.json["payload"]) == (Exit.CONFLICT, False, {"sum": 3})
    assert "was emitted before" in cli("emit", "paid:42").out
    kept: Emission = arrange(lambda store: store.emitted("paid:42"))
    assert json.loads(kept.payload or "") == {"sum": 3}
    assert query(engine_url, "SELECT actor FROM {event}")[0][0].startswith("cli:")


def test_emitting_before_a_job_waits_is_no_error(cli: Cli, arrange: Arrange[Any]) -> None:
    arrange(lambda store: store.check_schema())
    answer = cli("emit", "paid:42", "--json")
    assert (answer.code, answer.json["woken"], answer.json["payload"]) == (Exit.OK, 0, None)


def test_an_event_that_a_job_may_wait_for_can_be_emitted(cli: Cli, arrange: Arrange[None]) -> None:
    arrange(lambda store: store.check_schema())
    assert cli("emit", "e" * NAME_LIMIT_CHARACTERS).code == Exit.OK


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("paid", "--payload", "{"), "--payload"),
        ((" ",), "EVENT"),
        (("paid" * 51,), "EVENT"),
        (("paid", "--payload", json.dumps("x" * 70_000)), "payload of event paid"),
        (("approval:x:y",), "EVENT"),
    ],
)
def test_events_that_cannot_be_meant_are_refused(
    words: tuple[str, ...], field: str, cli: Cli, arrange: Arrange[None]
) -> None:
    arrange(lambda store: store.check_schema())
    answer = cli("emit", *words, "--json")
    assert (answer.code, answer.error["field"]) == (Exit.USAGE, field)


def test_what_waits_for_an_answer_is_listed(cli: Cli, arrange: Arrange[JobId]) -> None:
    assert arrange(waiting)
    assert cli("approvals").out == "No job waits for an answer.\n"
    first, second = arrange(asking), arrange(lambda store: asking(store, "refund", queue="money", kind="pay"))
    plain = cli("approvals").out
    assert [line.split()[:3] for line in plain.splitlines()[1:3]] == [
        [second, "refund", "pay"],
        [first, "deploy", "greet"],
    ]
    found = cli("approvals", "--json").json["approvals"]
    assert [(each["name"], each["job"]["id"]) for each in found] == [("refund", second), ("deploy", first)]
    assert [each["name"] for each in cli("approvals", "--queue", "money", "--json").json["approvals"]] == ["refund"]
    assert cli("approvals", "--kind", "other", "--json").json == {"approvals": []}


@pytest.mark.parametrize(("flag", "word"), [((), "approved"), (("--deny",), "refused")])
def test_an_answer_wakes_the_job_with_who_gave_it(
    flag: tuple[str, ...], word: str, cli: Cli, arrange: Arrange[Any]
) -> None:
    job_id = arrange(asking)
    answer = cli("approve", "--yes", job_id, "deploy", *flag, "--note", "after lunch")
    assert (answer.code, answer.out) == (Exit.OK, f"deploy of job {job_id} {word}.\n")
    assert arrange(lambda store: state_of(store, job_id)) is JobState.READY
    kept: Emission = arrange(lambda store: store.emitted(approval_event(job_id, "deploy")))
    said = json.loads(kept.payload or "")
    assert (said["approved"], said["note"]) == (word == "approved", "after lunch")
    assert said["by"].startswith("cli:")
    assert cli("approvals", "--json").json == {"approvals": []}
    again = cli("approve", "--yes", job_id, "deploy", "--json")
    assert again.code == Exit.CONFLICT
    assert "answered already" in again.error["error"]


def test_an_answer_is_asked_for_first(cli: Cli, arrange: Arrange[Any], engine_url: str) -> None:
    job_id = arrange(asking)
    without = cli("approve", job_id, "deploy", "--json")
    assert (without.code, without.error["field"]) == (Exit.USAGE, "--yes")
    code, screen = at_a_terminal(engine_url, "n\n", "approve", job_id, "deploy", "--deny")
    assert (code, "No answer was given." in screen) == (Exit.CONFLICT, True)
    assert f"deploy of job {job_id} (greet) will be refused for good" in " ".join(screen.split())
    assert arrange(lambda store: state_of(store, job_id)) is JobState.WAITING


def test_a_question_that_was_not_asked_is_answered_only_ahead(cli: Cli, arrange: Arrange[JobId]) -> None:
    job_id = arrange(asking)
    wrong = cli("approve", "--yes", job_id, "deplyo", "--json")
    assert wrong.code == Exit.CONFLICT
    assert "it asks 'deploy'" in wrong.error["error"]
    ahead = cli("approve", "--yes", job_id, "later", "--ahead", "--json")
    assert (ahead.code, ahead.json["name"], ahead.json["approved"]) == (Exit.OK, "later", True)
    assert "it asks nothing now" in cli("approve", "--yes", arrange(waiting), "deploy", "--json").error["error"]


def test_jobs_that_cannot_be_answered(cli: Cli, arrange: Arrange[JobId]) -> None:
    dead = arrange(lambda store: job_in(JobState.DEAD, store))
    assert cli("approve", "--yes", dead, "deploy", "--ahead").code == Exit.CONFLICT
    assert "is dead: it asks nothing any more" in cli("approve", "--yes", dead, "deploy", "--json").error["error"]
    assert cli("approve", "--yes", new_job_id(), "deploy").code == Exit.NOT_FOUND
    assert cli("approve", "--yes", "seven", "deploy").code == Exit.NOT_FOUND  # it could be a ref


def test_hostile_names_are_shown_and_not_obeyed(cli: Cli, arrange: Arrange[Any]) -> None:
    job_id = arrange(lambda store: asking(store, NASTY, kind=NASTY))
    answers = [cli("approvals"), cli("approvals", "--json"), cli("approve", "--yes", job_id, "no" + NASTY)]
    answers += [
        cli("approve", "--yes", job_id, NASTY, "--note", NASTY),
        cli("emit", NASTY),
        cli("emit", "e", "--payload", NASTY),
    ]
    answers += [cli("emit", "e", "--payload", json.dumps(NASTY)), cli("emit", "e"), cli("emit", "e", "--json")]
    for answer in answers:
        assert not set("\x1b\x07\x9b\u202e\r") & set(answer.out + answer.err)
        assert "\nforged" not in answer.out + answer.err
