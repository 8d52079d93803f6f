"""`perdure pause`, `resume`, `pauses`, `breakers` and `spent`: what operators hold back."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.builders.jobs import a_job, apply, start, state_of
from tests.surfaces.conftest import Arrange, Cli

from perdure.domain.gate import BreakerState, BreakerView, Pause
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.operate.audit import By
from perdure.storage.port import Store
from perdure.surfaces.cli.exits import Exit

NASTY = "[red]k\x1b]0;owned\x07\x9b2J\u202e\r\nforged"


@pytest.fixture(autouse=True)
def migrated(arrange: Arrange[None]) -> None:
    """An empty database."""
    arrange(lambda store: store.check_schema())


def test_a_pause_is_made_listed_and_ended(cli: Cli) -> None:
    assert cli("pauses").out == "Nothing is paused.\n"
    made = cli("pause", "--queue", "mail", "--until", "+2h", "--why", "their quota")
    assert made.code == Exit.OK
    assert made.out.startswith("queue mail paused, until 20")
    [found] = cli("pauses", "--json").json["pauses"]
    assert (found["queue"], found["kind"], found["why"]) == ("mail", None, "their quota")
    assert found["actor"].startswith("cli:")
    row = cli("pauses").out.splitlines()[1]
    assert row.split()[:3] == [found["id"], "mail", "any"]
    ended = cli("resume", found["id"])
    assert (ended.code, ended.out.splitlines()) == (
        Exit.OK,
        ["1 pause ended, 0 held jobs ready again:", f"  {found['id']}  queue mail"],
    )
    assert cli("pauses", "--json").json == {"pauses": []}


def test_a_pause_names_what_is_unknown_and_what_else_must_end(cli: Cli) -> None:
    first = cli("pause", "--queue", "mial", "--json").json
    assert first["warnings"] == ["no job, schedule or running worker uses queue 'mial' yet"]
    assert first["also_held_by"] == []
    again, held_by = cli("pause", "--queue", "mial"), first["pause"]["id"]
    assert again.err.splitlines() == [
        "warning: no job, schedule or running worker uses queue 'mial' yet",
        f"warning: another pause ({held_by}) also holds these jobs",
    ]
    command = again.out.splitlines()[-1].split()
    assert cli(*command[1:]).out.startswith("2 pauses ended")
    foreseen = cli("pause", "--queue", "mial", "--dry-run")
    assert "uses queue 'mial' yet" in foreseen.err


def test_a_pause_of_certain_arguments(cli: Cli) -> None:
    made = cli("pause", "--kind", "send", "--args", '{"tenant": 7}', "--json")
    assert (made.code, made.json["action"], made.json["pause"]["args"]) == (Exit.OK, "paused", {"tenant": 7})
    assert "Arguments" in cli("pauses").out
    said = cli("pause", "--kind", "send", "--queue", "mail", "--args", '{"tenant": 7}').out
    assert said.startswith('kind send in queue mail with {"tenant":7} paused, until it is resumed.')


def test_a_dry_run_of_a_pause_counts_what_it_would_hold_and_writes_nothing(cli: Cli, arrange: Arrange[Any]) -> None:
    async def jobs(store: Store) -> list[JobId]:
        made = [a_job(kind="greet", args=f'{{"n":{n % 2}}}', queue="mail") for n in range(7)]
        await store.insert([*made, a_job(kind="other", queue="mail")])
        return [job.id for job in made]

    made = arrange(jobs)
    ids = sorted(made, reverse=True)
    said = cli("pause", "--queue", "mail", "--kind", "greet", "--dry-run").out.splitlines()
    assert said == [
        "kind greet in queue mail would be paused; 7 jobs would be held.",
        *(f"  {job_id}" for job_id in ids[:5]),
        "  … and 2 more",
    ]
    of_args = cli("pause", "--kind", "greet", "--args", '{"n": 1}', "--dry-run", "--json").json
    assert (of_args["dry_run"], of_args["jobs"], of_args["examples"]) == (
        *(True, 3),
        sorted(made[1::2], reverse=True),
    )
    assert cli("pause", "--queue", "mail", "--until", "-1h", "--dry-run").code == Exit.USAGE
    assert cli("pauses", "--json").json == {"pauses": []}
    assert cli("audit", "list", "--json").json["entries"] == []


def test_a_dry_run_of_resume_counts_what_it_would_release_and_writes_nothing(cli: Cli, arrange: Arrange[Any]) -> None:
    made = [cli("pause", "--kind", kind, "--json").json["pause"]["id"] for kind in ("greet", "send")]

    async def held(store: Store) -> list[JobId]:
        claims = [await start(store) for _ in range(2)]
        for claim, pause_id in zip(claims, made, strict=True):
            await apply(store, transition.paused(claim, Reason.ON_HOLD, None, f"pause {pause_id}: {claim.kind}"))
        return [claim.job_id for claim in claims]

    greeted, sent = arrange(held)
    entries = cli("audit", "list", "--json").json["entries"]
    said = cli("resume", "--kind", "greet", "--dry-run").out.splitlines()
    assert said == ["1 pause would end; 1 job would be ready again.", f"  {made[0]}  kind greet", f"  {greeted}"]
    everything = cli("resume", "--all", "--dry-run", "--json").json
    assert (everything["jobs"], everything["examples"]) == (2, [sent, greeted])
    assert [one["id"] for one in everything["pauses"]] == made
    assert cli("resume", "nowhere", "--dry-run").code == Exit.NOT_FOUND
    assert len(cli("pauses", "--json").json["pauses"]) == 2
    assert cli("audit", "list", "--json").json["entries"] == entries
    assert arrange(lambda store: state_of(store, greeted)) is JobState.PAUSED


def test_resume_makes_held_jobs_ready(cli: Cli, arrange: Arrange[Any]) -> None:
    pause_id = cli("pause", "--kind", "greet", "--json").json["pause"]["id"]

    async def held(store: Store) -> JobId:
        claim = await start(store)
        await apply(store, transition.paused(claim, Reason.ON_HOLD, None, f"pause {pause_id}: greet"))
        return claim.job_id

    job_id = arrange(held)
    assert f"pause {pause_id}" in cli("jobs", "why", job_id, "--json").json["answer"]
    done = cli("resume", "--kind", "greet", "--json").json
    assert (done["jobs"], [each["id"] for each in done["pauses"]]) == (1, [pause_id])
    assert arrange(lambda store: state_of(store, job_id)) is JobState.READY


def test_nothing_to_resume_changes_nothing(cli: Cli) -> None:
    assert cli("resume", "--all").code == Exit.OK
    assert cli("resume", "--queue", "mail", "--json").code == Exit.OK
    assert cli("resume", "0123abcd", "--json").code == Exit.NOT_FOUND


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("pause",), "--queue"),
        (("pause", "--queue", "mail", "--args", '{"n": 1}'), "--args"),
        (("pause", "--kind", "send", "--args", "[1]"), "--args"),
        (("pause", "--kind", "send", "--args", "{}"), "--args"),
        (("pause", "--kind", "send", "--args", "{n"), "--args"),
        (("pause", "--queue", "mail", "--until", "tomorrow"), "--until"),
        (("pause", "--queue", "mail", "--until", "-2h"), "--until"),
        (("pause", "--queue", " "), "--queue"),
        (("pause", "--queue", "mail", "--why", "x" * 501), "--why"),
        (("resume",), "ID"),
        (("resume", "abc", "--all"), "ID"),
        (("breakers", "open", "digicert", "--for", "soon"), "--for"),
        (("breakers", "open", "digicert", "--for", "0s"), "--for"),
        (("breakers", "open", " "), "NAME"),
        (("spent", " "), "NAME"),
    ],
)
def test_bad_input_is_refused_by_name(words: tuple[str, ...], field: str, cli: Cli) -> None:
    answer = cli(*words, "--json")
    assert (answer.code, answer.error["field"]) == (Exit.USAGE, field)
    assert cli("pauses", "--json").json == {"pauses": []}
    assert cli("breakers", "--json").json == {"breakers": []}


def test_a_breaker_is_opened_listed_and_closed(cli: Cli, arrange: Arrange[Any]) -> None:
    assert cli("breakers").out == "No job has reached a breaker yet.\n"
    opened = cli("breakers", "open", "digicert", "--why", "their outage")
    assert opened.code == Exit.OK
    assert opened.out.startswith("digicert opened, until it is closed by hand.\n")
    assert "spelt as in the code" in opened.out
    row = cli("breakers").out.splitlines()[1]
    assert row.split()[:2] == ["digicert", "open"]
    assert "closed by hand  cli:" in row
    [found] = cli("breakers", "--json").json["breakers"]
    assert (found["note"], found["by"].startswith("cli:")) == ("their outage", True)
    again = cli("breakers", "open", "digicert", "--for", "1h", "--json").json
    assert (again["known"], again["breaker"]["by_hand"]) == (True, False)
    assert again["breaker"]["until"] is not None
    assert cli("breakers", "close", "digicert").out == "digicert closed.\n"
    [view] = arrange(lambda store: store.breakers())
    assert view.state is BreakerState.CLOSED
    assert cli("breakers", "close", "digicert").code == Exit.CONFLICT
    unknown = cli("breakers", "close", "digicrt", "--json")
    assert (unknown.code, "known are 'digicert'" in unknown.error["error"]) == (Exit.NOT_FOUND, True)


def test_an_option_before_the_command_is_not_lost(cli: Cli, engine_url: str) -> None:
    """`--url` in the wrong place must not act on another database."""
    answer = cli("breakers", "--url", engine_url, "open", "digicert")
    assert answer.code == Exit.USAGE
    assert "--url must come after open" in answer.err
    assert cli("breakers", "--json").json == {"breakers": []}


def test_spending_is_shown(cli: Cli, arrange: Arrange[Any]) -> None:
    async def spend(store: Store) -> bool:
        return await store.spend(await start(store), "tokens", 1234.5)

    assert arrange(spend)
    assert cli("spent", "tokens", "--json").json == {
        "name": "tokens",
        "daily": 1234.5,
        "weekly": 1234.5,
        "monthly": 1234.5,
    }
    assert [one["name"] for one in cli("spent", "--json").json["budgets"]] == ["tokens"]
    assert cli("spent").out.splitlines()[1].startswith("tokens")
    title, day, *_ = cli("spent", "tokens").out.splitlines()
    assert (title, day.split()) == ("tokens", ["24", "hours", "1,234.50"])
    unknown = cli("spent", "tokns", "--json")
    assert (unknown.code, "known are 'tokens'" in unknown.error["error"]) == (Exit.NOT_FOUND, True)


def test_spending_of_nothing_at_all(cli: Cli, arrange: Arrange[Any]) -> None:
    arrange(lambda store: store.check_schema())
    assert cli("spent").out == "No budget has spent anything yet.\n"
    unknown = cli("spent", "tokens")
    assert (unknown.code, "no budget has spent anything yet" in " ".join(unknown.err.split())) == (Exit.NOT_FOUND, True)


def test_hostile_text_is_shown_and_not_obeyed(cli: Cli, arrange: Arrange[Any]) -> None:
    async def fill(store: Store) -> None:
        now = await store.now()
        args = '{"n": "\\u001b[2J"}'
        pause = Pause(id="0badbad0", queue=NASTY, kind=NASTY, args=args, why=NASTY, actor=NASTY, at=now)
        await store.pause(pause, By(NASTY))
        await store.set_breaker(BreakerView(name=NASTY, state=BreakerState.OPEN, note=NASTY, changed_at=now), By(NASTY))

    arrange(fill)
    commands = [("pauses",), ("breakers",), ("breakers", "close", NASTY), ("breakers", "open", NASTY)]
    commands += [("spent", NASTY), ("pause", "--queue", NASTY), ("resume", NASTY), ("resume", "0badbad0")]
    for words in commands:
        for answer in (cli(*words, "--json"), cli(*words)):
            assert not set("\x1b\x07\x9b\u202e\r") & set(answer.out + answer.err)
            assert "\nforged" not in answer.out + answer.err
