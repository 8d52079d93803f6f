"""`perdure jobs why`: one answer, for people and for scripts."""

from __future__ import annotations

from typing import Any

from tests.support.builders.jobs import HOUR, apply, claim_one, employ, enqueue, job_in, start
from tests.surfaces.conftest import Arrange, Cli

from perdure.domain.flows.flow import Awaits
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import JobId, new_job_id
from perdure.domain.jobs.states import JobState, Reason
from perdure.storage.port import Store
from perdure.surfaces.cli.exits import Exit

NASTY = "[red]k\x1b]0;owned\x07\x9b2J\u202e\r\nforged"


async def nasty_waiter(store: Store) -> JobId:
    """A job that waits for an event with a hostile name, and says hostile things."""
    claim = await start(store, kind=NASTY, queue=NASTY)
    await apply(store, transition.parked(claim, Reason.AWAITING_EVENT, HOUR, Awaits(event=NASTY), NASTY))
    return claim.job_id


async def nasty_runner(store: Store) -> JobId:
    """A job that runs on a worker with a hostile name."""
    job_id = await enqueue(store, queue="own")
    await claim_one(store, await employ(store, name=NASTY), "own")
    return job_id


def test_b14_why_shows_people_until_when_and_what_to_do(cli: Cli, arrange: Arrange[JobId]) -> None:
    job_id = arrange(lambda store: enqueue(store, delay=HOUR))
    answer = cli("jobs", "why", job_id)
    assert answer.code == Exit.OK
    head, said, until, advice = answer.out.splitlines()
    assert (head, said) == (f"greet  SCHEDULED  {job_id}", "It is scheduled for later.")
    assert until.startswith("  Until 20")
    assert advice == f"What to do: perdure jobs run-now {job_id} runs it without waiting"


def test_b14_why_for_scripts(cli: Cli, arrange: Arrange[JobId]) -> None:
    job_id = arrange(lambda store: job_in(JobState.RETRYING, store))
    found = cli("jobs", "why", job_id, "--json").json
    assert set(found) == {"job", "answer", "facts", "until", "what_to_do", "remedy"}
    assert (found["job"]["id"], found["job"]["args"]) == (job_id, {"name": "Ada"})
    assert found["until"] == found["job"]["due_at"]
    assert found["facts"] == ["The last error was builtins.ValueError: no such host"]


def test_b14_why_of_a_job_that_is_not_there(cli: Cli, arrange: Arrange[None]) -> None:
    arrange(lambda store: store.check_schema())
    missing = new_job_id()
    answer = cli("jobs", "why", missing, "--json")
    assert answer.code == Exit.NOT_FOUND
    assert missing in answer.error["error"]
    assert cli("jobs", "why", "seven").code == Exit.NOT_FOUND


def test_b14_why_obeys_no_hostile_text(cli: Cli, arrange: Arrange[Any]) -> None:
    for make in (nasty_waiter, nasty_runner, lambda store: enqueue(store, kind=NASTY, queue=NASTY)):
        job_id = arrange(make)
        for answer in (cli("jobs", "why", job_id), cli("jobs", "why", job_id, "--json")):
            assert answer.code == Exit.OK
            assert not set("\x1b\x07\x9b\u202e\r") & set(answer.out + answer.err)
            assert "\nforged" not in answer.out
