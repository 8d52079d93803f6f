"""`perdure jobs` and `perdure dead`: every command, for people and for scripts, with its exit codes, on both."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from tests.support.builders.gate_requests import held_by_rate, past_gates
from tests.support.builders.jobs import HOUR, a_job, apply, enqueue, job_in, numbered_id, start, state_of
from tests.support.databases.behind import query
from tests.surfaces.conftest import Arrange, Cli, run_cli

from perdure.domain.jobs.ids import JobId, new_job_id
from perdure.domain.jobs.log_lines import NewLine
from perdure.domain.jobs.states import JobState
from perdure.domain.jobs.transition import succeeded
from perdure.storage.operate.kinds import KindRecord
from perdure.storage.port import Store
from perdure.surfaces.cli.exits import Exit

NO_JOB = str(new_job_id())


@pytest.fixture
def dead(arrange: Arrange[JobId]) -> JobId:
    """A dead letter."""
    return arrange(lambda store: job_in(JobState.DEAD, store))


@pytest.fixture
def parked(arrange: Arrange[JobId]) -> JobId:
    """A job for later."""
    return arrange(lambda store: enqueue(store, delay=HOUR))


@pytest.fixture
def running(arrange: Arrange[JobId]) -> JobId:
    """A job that a worker runs."""

    async def begin(store: Store) -> JobId:
        return (await start(store)).job_id

    return arrange(begin)


def state(arrange: Arrange[Any], job_id: JobId) -> JobState:
    found: JobState = arrange(lambda store: state_of(store, job_id))
    return found


def test_list_for_people(cli: Cli, dead: JobId) -> None:
    answer = cli("jobs", "list")
    assert answer.code == Exit.OK
    assert dead in answer.out
    assert "dead" in answer.out
    assert "\x1b" not in answer.out, "colours only on a terminal"
    assert max(len(line) for line in answer.out.splitlines()) <= 80


def test_list_for_scripts(cli: Cli, dead: JobId, parked: JobId) -> None:
    document = cli("jobs", "list", "--json").json
    assert [job["id"] for job in document["jobs"]] == [parked, dead]
    assert document["jobs"][0]["args"] == {"name": "Ada"}
    assert document["next"] is None


@pytest.mark.parametrize(
    ("where", "tries", "told"),
    [
        (JobState.READY, "0/5", "0/5 made, none failed"),
        (JobState.RUNNING, "1/5", "1/5 made, none failed"),
        (JobState.SUCCEEDED, "1/5", "1/5 made, none failed"),
        (JobState.RETRYING, "1/5", "1/5 made, 1 failed"),
    ],
)
def test_tries_count_the_attempts_that_were_made(
    engine_url: str, arrange: Arrange[JobId], where: JobState, tries: str, told: str
) -> None:
    job_id = arrange(lambda store: job_in(where, store, max_attempts=5))
    assert tries in run_cli("jobs", "list", env={"PERDURE_URL": engine_url, "COLUMNS": "140"}).out.split()
    assert told in run_cli("jobs", "show", job_id, env={"PERDURE_URL": engine_url}).out


def test_an_empty_list_is_no_error(cli: Cli, arrange: Arrange[None]) -> None:
    arrange(lambda store: store.check_schema())
    for command in (("jobs", "list"), ("dead", "list")):
        assert cli(*command).code == Exit.OK
        assert cli(*command, "--json").json == {"jobs": [], "next": None, "searched_to": None}


def test_pages_follow_each_other(cli: Cli, arrange: Arrange[Any]) -> None:
    arrange(lambda store: store.insert([a_job(id=numbered_id(number)) for number in range(3)]))
    first = cli("jobs", "list", "--limit", "2", "--json").json
    second = cli("jobs", "list", "--limit", "2", "--before", first["next"], "--json").json
    assert [job["id"] for page in (first, second) for job in page["jobs"]] == [numbered_id(n) for n in (2, 1, 0)]
    assert f"--before {numbered_id(1)}" in cli("jobs", "list", "--limit", "2").out


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--state", "dead"], 1),
        (["--state", "dead", "--state", "scheduled"], 2),
        (["--kind", "greet"], 2),
        (["--kind", "other"], 0),
        (["--queue", "default"], 2),
        (["--tag", "vip"], 0),
        (["--error", "NO SUCH host"], 1),
        (["--older-than", "1h"], 0),
        (["--older-than", "0s"], 2),
        (["--finished-after", "-1h"], 1),
        (["--finished-after", "now"], 0),
        (["--finished-before", "-1h"], 0),
        (["--mark", "read"], 0),
        (["--unmarked"], 2),
        (["--where", "args.name=Ada"], 2),
        (["--where", "args.name~AD", "--where", "error.type=ValueError"], 0),
        (["--where", "args.name"], 2),
        (["--where", "args.nothing"], 0),
        (["--search", "state:dead args.name=Ada error~host"], 1),
        (["--search", "args.name=Ada", "--kind", "greet", "--where", "error"], 1),
        (["--group", "000000000000"], 0),
        (["--limit", "1", "--page", "2"], 1),
        (["--limit", "1", "--page", "3"], 0),
    ],
)
def test_filters(cli: Cli, dead: JobId, parked: JobId, options: list[str], found: int) -> None:
    assert len(cli("jobs", "list", *options, "--json").json["jobs"]) == found


def test_show_prints_everything(cli: Cli, dead: JobId) -> None:
    for group in ("jobs", "dead"):
        plain = cli(group, "show", dead)
        assert plain.code == Exit.OK
        for piece in (dead, "DEAD", "attempts exhausted", "no such host", '"name": "Ada"', "#1", "worker-1", "Z  ("):
            assert piece in plain.out
        assert "Traceback (most" not in plain.out
        assert "Traceback (most" in cli(group, "show", dead, "--traceback").out
        document = cli(group, "show", dead, "--json").json
        assert document["job"]["state"] == "dead"
        assert document["attempts"][0]["error_type"] == "builtins.ValueError"


def test_show_prints_when_a_job_comes_back(cli: Cli, parked: JobId) -> None:
    assert "comes back" in cli("jobs", "show", parked).out


def test_show_prints_with_whom_a_job_takes_turns(cli: Cli, arrange: Arrange[JobId], parked: JobId) -> None:
    fair = arrange(lambda store: enqueue(store, fair_key="tenant\x1b[31m 7"))
    assert [line.split()[-1] for line in cli("jobs", "show", fair).out.splitlines() if "fair key" in line] == ["7"]
    assert cli("jobs", "show", fair, "--json").json["job"]["fair_key"].startswith("tenant")
    assert "fair key" not in cli("jobs", "show", parked).out


def test_show_prints_how_far_a_job_has_come(cli: Cli, arrange: Arrange[Any]) -> None:
    async def come_some_way(store: Store) -> JobId:
        claim = await start(store)
        assert await store.checkpoint(claim, '{"page": 17}')
        return claim.job_id

    job_id = arrange(come_some_way)
    assert 'Checkpoint\n  {\n    "page": 17\n  }' in "\n".join(
        line.rstrip() for line in cli("jobs", "show", job_id).out.splitlines()
    )
    assert cli("jobs", "show", job_id, "--json").json["job"]["cursor"] == {"page": 17}


@pytest.fixture
def talker(arrange: Arrange[JobId]) -> JobId:
    """A running job that has logged 30 lines, the last of them hostile."""

    async def begin(store: Store) -> JobId:
        claim, now = await start(store), await store.now()
        texts = [*(f"line {number}" for number in range(29)), "red \x1b[31m\nforged"]
        await store.save_lines([NewLine(claim=claim, at=now, level="warning", text=text) for text in texts])
        return claim.job_id

    return arrange(begin)


def test_show_ends_with_the_end_of_the_log(cli: Cli, talker: JobId) -> None:
    page = cli("jobs", "show", talker).out
    assert "line 10" in page
    assert "line 9" not in page
    assert "warning  red \\x1b[31m\\nforged" in page
    assert "\x1b" not in page
    assert "line 27" not in cli("jobs", "show", talker, "--lines", "2").out
    assert "line 0" in cli("jobs", "show", talker, "--lines", "100").out
    assert "Log" not in cli("jobs", "show", talker, "--lines", "0").out
    lines = cli("jobs", "show", talker, "--lines", "1", "--json").json["lines"]
    assert [(line["number"], line["level"], line["text"]) for line in lines] == [
        (30, "warning", "red \x1b[31m\nforged")
    ]
    refused = cli("jobs", "show", talker, "--lines", "-1")
    assert refused.code == Exit.USAGE
    assert "lines must be from 0" in refused.err


def test_dead_show_is_for_dead_letters(cli: Cli, parked: JobId) -> None:
    answer = cli("dead", "show", parked)
    assert answer.code == Exit.NOT_FOUND
    assert "scheduled" in answer.err


def test_dead_list(cli: Cli, dead: JobId, parked: JobId) -> None:
    answer = cli("dead", "list")
    assert dead in answer.out
    assert "no such host" in answer.out
    assert parked not in answer.out
    assert [job["id"] for job in cli("dead", "list", "--json").json["jobs"]] == [dead]
    assert cli("dead", "list", "--older-than", "1h", "--json").json["jobs"] == []


def test_a_wide_terminal_gets_wider_tables(engine_url: str, dead: JobId) -> None:
    for group in ("jobs", "dead"):
        answer = run_cli(group, "list", env={"PERDURE_URL": engine_url, "COLUMNS": "160"})
        assert "Last error" in answer.out
        assert "no such host" in answer.out


@pytest.mark.parametrize("group", ["jobs", "dead"])
def test_a_narrow_terminal_gets_whole_ids(
    engine_url: str, dead: JobId, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.get_terminal_size", lambda *_: os.terminal_size((40, 24)))
    answer = run_cli(group, "list", env={"PERDURE_URL": engine_url, "COLUMNS": None, "TERM": "xterm"})
    assert dead in answer.out


@pytest.mark.parametrize("group", ["jobs", "dead"])
def test_a7_requeue(cli: Cli, arrange: Arrange[Any], dead: JobId, group: str) -> None:
    answer = cli(group, "requeue", dead, "--json")
    assert (answer.code, answer.json["ids"]) == (Exit.OK, [dead])
    assert state(arrange, dead) is JobState.READY
    again = cli(group, "requeue", dead, "--json")
    assert again.code == Exit.CONFLICT
    assert "it is ready" in again.error["error"]


def test_requeue_for_people(cli: Cli, dead: JobId) -> None:
    answer = cli("jobs", "requeue", dead, NO_JOB)
    assert answer.code == Exit.NOT_FOUND
    assert "1 job requeued" in answer.out
    assert f"{NO_JOB}  not found" in answer.out


def test_cancel(cli: Cli, arrange: Arrange[Any], parked: JobId, engine_url: str) -> None:
    answer = cli("jobs", "cancel", parked, "--why", "no longer wanted", "--json")
    assert (answer.code, answer.json["ids"], answer.json["asked"]) == (Exit.OK, [parked], [])
    assert state(arrange, parked) is JobState.CANCELLED
    table = "perdure_audit" if engine_url.startswith("sqlite") else "audit"
    [[actor]] = query(engine_url, f"SELECT actor FROM {table}")
    assert actor.startswith("cli:")


def test_cancel_of_a_running_job_asks_it_to_stop(cli: Cli, running: JobId) -> None:
    answer = cli("jobs", "cancel", running)
    assert answer.code == Exit.OK
    assert "1 job asked to stop" in answer.out
    assert cli("jobs", "cancel", running).code == Exit.CONFLICT
    assert "asked to stop" in cli("jobs", "show", running).out


def test_run_now(cli: Cli, arrange: Arrange[Any], parked: JobId) -> None:
    answer = cli("jobs", "run-now", parked)
    assert answer.code == Exit.OK
    assert state(arrange, parked) is JobState.READY
    assert cli("jobs", "run-now", parked).code == Exit.CONFLICT


def test_purge_by_id_is_for_dead_letters_only(cli: Cli, arrange: Arrange[Any], dead: JobId, parked: JobId) -> None:
    answer = cli("dead", "purge", dead, parked, "--yes", "--json")
    assert (answer.code, answer.json["ids"]) == (Exit.CONFLICT, [dead])
    assert [left["id"] for left in answer.json["unchanged"]] == [parked]
    assert cli("jobs", "show", dead).code == Exit.NOT_FOUND


@pytest.mark.parametrize(
    "command",
    [
        ("jobs", "show"),
        ("jobs", "cancel"),
        ("jobs", "requeue"),
        ("jobs", "run-now"),
        ("dead", "show"),
        ("dead", "requeue"),
        ("dead", "purge", "--yes"),
    ],
)
def test_an_id_that_is_not_there_is_named(cli: Cli, arrange: Arrange[Any], command: tuple[str, ...]) -> None:
    arrange(lambda store: store.check_schema())
    answer = cli(*command, NO_JOB, "--json")
    assert answer.code == Exit.NOT_FOUND
    assert NO_JOB in answer.error["error"]
    assert answer.out == ""
    assert NO_JOB in cli(*command, NO_JOB).err


@pytest.mark.parametrize(
    "command",
    [
        ("jobs", "cancel", "--kind", "greet"),
        ("jobs", "requeue", "--all"),
        ("jobs", "run-now", "--queue", "default"),
        ("dead", "requeue", "--all"),
        ("dead", "purge", "--all"),
        ("dead", "purge", NO_JOB),
    ],
)
def test_without_a_terminal_many_jobs_need_yes(cli: Cli, dead: JobId, command: tuple[str, ...]) -> None:
    for words in (command, (*command, "--json")):
        answer = cli(*words, typed="y\n")
        assert answer.code == Exit.USAGE
        assert "--yes" in answer.err
    assert cli("dead", "list", "--json").json["jobs"]


def test_dry_run_shows_and_changes_nothing(cli: Cli, arrange: Arrange[Any], dead: JobId, parked: JobId) -> None:
    answer = cli("dead", "purge", "--all", "--dry-run", "--json")
    assert (answer.code, answer.json["jobs"], answer.json["dry_run"]) == (Exit.OK, 1, True)
    assert (answer.json["bulk"], answer.json["notes"]) == (None, ["This cannot be undone."])
    assert "1 job would be cancelled" in cli("jobs", "cancel", "--all", "--dry-run").out
    assert state(arrange, dead) is JobState.DEAD
    assert state(arrange, parked) is JobState.SCHEDULED


def test_by_filter_with_yes(cli: Cli, arrange: Arrange[Any], dead: JobId) -> None:
    answer = cli("dead", "requeue", "--error", "no such host", "--yes", "--json")
    assert (answer.code, answer.json["bulk"]["done"], answer.json["bulk"]["state"]) == (Exit.OK, 1, "done")
    assert state(arrange, dead) is JobState.READY
    assert cli("dead", "requeue", "--all", "--yes").code == Exit.OK, "nothing to do is no error"
    assert cli("dead", "purge", "--all", "--dry-run").code == Exit.OK
    assert cli("dead", "requeue", "--all", "--yes", "--json").json["bulk"] is None


def test_the_limit_of_a_command_is_kept_and_reported(cli: Cli, arrange: Arrange[Any]) -> None:
    arrange(lambda store: store.insert([a_job(id=numbered_id(number)) for number in range(3)]))
    answer = cli("jobs", "cancel", "--kind", "greet", "--limit", "2", "--yes")
    assert "2 jobs cancelled" in answer.out
    assert "--limit" in answer.out


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("jobs", "list", "--limit", "many"), "--limit"),
        (("jobs", "list", "--limit", "0"), "--limit"),
        (("jobs", "list", "--state", "odd"), "--state"),
        (("jobs", "list", "--older-than", "7x"), "--older-than"),
        (("jobs", "list", "--before", "nine"), "--before"),
        (("jobs", "list", "--kind", ""), "--kind"),
        (("jobs", "list", "--queue", ""), "--queue"),
        (("dead", "list", "--tag", ""), "--tag"),
        (("dead", "list", "--error", ""), "--error"),
        (("jobs", "list", "--page", "0"), "--page"),
        (("jobs", "list", "--page", "501"), "--page"),
        (("jobs", "list", "--page", "2", "--before", NO_JOB), "--page"),
        (("jobs", "list", "--mark", ""), "--mark"),
        (("jobs", "list", "--mark", "read", "--unmarked"), "--mark"),
        (("jobs", "list", "--finished-after", "soon"), "--finished-after"),
        (("jobs", "count", "--cap", "0"), "--cap"),
        (("jobs", "count", "--by", "tag"), "--by"),
        (("jobs", "mark", NO_JOB), "--as"),
        (("jobs", "mark", NO_JOB, "--as", "x" * 51), "--as"),
        (("jobs", "mark", NO_JOB, "--as", "read", "--clear"), "--as"),
        (("jobs", "show"), "job_id"),
        (("jobs", "cancel"), "ID"),
        (("jobs", "cancel", NO_JOB, "--kind", "greet"), "ID"),
        (("jobs", "requeue", "--state", "running", "--yes"), "--state"),
        (("dead", "purge"), "ID"),
    ],
)
def test_bad_input_names_the_field(cli: Cli, dead: JobId, words: tuple[str, ...], field: str) -> None:
    answer = cli(*words, "--json")
    assert (answer.code, answer.out) == (Exit.USAGE, "")
    assert answer.error["field"] == field
    assert answer.error["error"]
    plain = cli(*words)
    assert plain.code == Exit.USAGE
    assert plain.err.startswith("error: ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("jobs", "list", "--limit", "many"), "--limit must be a whole number, got 'many'"),
        (("worker", "jobs:app", "--processes", "0"), "--processes must be at least 1, got 0"),
        (("jobs", "list", "--limit"), "Option '--limit' requires an argument."),
        (("jobs", "list", "--limt", "3"), "No such option: --limt"),
    ],
)
def test_what_cannot_be_read_is_said_in_our_words(words: tuple[str, ...], said: str) -> None:
    answer = run_cli(*words)
    assert answer.code == Exit.USAGE
    assert answer.err.startswith(f"error: {said}")
    assert answer.err.endswith(f"\nTry: perdure {'worker' if words[0] == 'worker' else 'jobs list'} --help\n")


@pytest.mark.parametrize("words", [("jobs", "show", "nine"), ("jobs", "cancel", "nine"), ("jobs", "why", "nine")])
def test_a_name_that_no_job_has_is_reported(cli: Cli, dead: JobId, words: tuple[str, ...]) -> None:
    answer = cli(*words)
    assert answer.code == Exit.NOT_FOUND
    assert "nine" in answer.err


def test_f4_every_command_takes_a_ref_in_place_of_an_id(cli: Cli, arrange: Arrange[Any]) -> None:
    job_id = arrange(lambda store: job_in(JobState.DEAD, store, ref="JB_abc123"))
    assert cli("jobs", "show", "JB_abc123", "--json").json["job"]["id"] == job_id
    assert "JB_abc123" in cli("jobs", "show", job_id).out
    assert cli("dead", "show", "JB_abc123", "--json").json["job"]["ref"] == "JB_abc123"
    assert cli("jobs", "why", "JB_abc123", "--json").json["job"]["ref"] == "JB_abc123"
    for words in (("jobs", "list"), ("dead", "list")):
        assert "JB_abc123" in cli(*words).out
        assert cli(*words, "--json").json["jobs"][0]["ref"] == "JB_abc123"
    assert cli("audit", "add", "read", "--job", "JB_abc123", "--json").json["job_id"] == job_id
    assert [entry["action"] for entry in cli("audit", "list", "--job", "JB_abc123", "--json").json["entries"]] == [
        "read"
    ]
    assert cli("jobs", "list", "--parent", "JB_abc123", "--json").json["jobs"] == []
    assert cli("dead", "requeue", "JB_abc123", "--json").json["ids"] == [job_id]
    assert cli("jobs", "cancel", "JB_abc123", "JB_nobody", "--json").json["not_found"] == ["JB_nobody"]


def test_a_poisoned_row_is_shown_as_it_is(cli: Cli, arrange: Arrange[Any]) -> None:
    job_id = arrange(lambda store: enqueue(store, args="{not json"))
    assert "{not json" in cli("jobs", "show", job_id).out
    assert cli("jobs", "show", job_id, "--json").json["job"]["args"] == "{not json"


def test_hostile_jobs_cannot_write_to_the_terminal(cli: Cli, arrange: Arrange[Any]) -> None:
    nasty = "[red]k\x1b]0;owned\x07\x9b2J\u202e\r\nforged"
    args = json.dumps({"text": nasty}, ensure_ascii=True)
    job_id = arrange(
        lambda store: job_in(JobState.DEAD, store, kind=nasty, queue=nasty, args=args, tags=(nasty,), meta=args)
    )
    for words in (("jobs", "list"), ("dead", "list"), ("jobs", "show", job_id, "--traceback"), ("doctor",)):
        plain = cli(*words)
        assert not set("\x1b\x07\x9b\u202e\r") & set(plain.out)
        assert "\nforged" not in plain.out
        scripts = cli(*words, "--json")
        assert not set("\x1b\x07\x9b\u202e\r") & set(scripts.out)
        assert scripts.json
    assert "[red]k\\x1b]0;owned" in cli("jobs", "show", job_id).out


def test_jobs_are_counted(cli: Cli, dead: JobId, parked: JobId) -> None:
    assert cli("jobs", "count").out == "2\n"
    assert cli("jobs", "count", "--state", "dead", "--finished-after", "-1h").out == "1\n"
    assert cli("jobs", "count", "--kind", "other", "--by", "kind").out == "No jobs.\n"
    answer = cli("jobs", "count", "--by", "state", "--by", "kind", "--json")
    assert answer.json == {
        "counts": [
            {"jobs": 1, "capped": False, "kind": "greet", "state": "dead"},
            {"jobs": 1, "capped": False, "kind": "greet", "state": "scheduled"},
        ]
    }
    assert cli("jobs", "count", "--json").json == {"counts": [{"jobs": 2, "capped": False}]}
    table = cli("jobs", "count", "--by", "state").out
    assert "State" in table
    assert "scheduled" in table


def test_a_count_beyond_the_cap_is_reported_as_at_least_so_large(cli: Cli, arrange: Arrange[Any]) -> None:
    arrange(lambda store: store.insert([a_job() for _ in range(3)]))
    assert cli("jobs", "count", "--cap", "2").out == "2+\n"
    assert cli("jobs", "count", "--cap", "2", "--json").json == {"counts": [{"jobs": 2, "capped": True}]}


def test_a11_a_dead_letter_is_marked_as_read(cli: Cli, dead: JobId, parked: JobId) -> None:
    assert "1 job marked" in cli("jobs", "mark", dead, "--as", "read").out
    assert "mark" in cli("jobs", "show", dead).out
    assert cli("jobs", "show", dead, "--json").json["job"]["mark"] == "read"
    assert [job["id"] for job in cli("dead", "list", "--mark", "read", "--json").json["jobs"]] == [dead]
    assert cli("dead", "list", "--unmarked", "--json").json["jobs"] == []
    assert cli("jobs", "mark", "--mark", "read", "--clear", "--yes", "--json").json["bulk"]["done"] == 1
    assert cli("dead", "list", "--unmarked", "--json").json["jobs"][0]["mark"] is None
    assert cli("jobs", "mark", NO_JOB, "--as", "read").code == Exit.NOT_FOUND


SENT = KindRecord(name="greet", words={"succeeded": "sent", "scheduled": "pending", "ready": "pending"})


async def with_words(store: Store) -> tuple[JobId, JobId, JobId]:
    """A job that was sent, one that is pending, and one of a kind that has no words."""
    await store.declare_kinds([SENT])
    sent = await job_in(JobState.SUCCEEDED, store)
    pending = await job_in(JobState.SCHEDULED, store)
    return sent, pending, await job_in(JobState.SUCCEEDED, store, kind="other", queue="another")


def test_f4_the_words_of_an_app_are_shown_and_understood(cli: Cli, arrange: Arrange[Any]) -> None:
    """The tool has none of the app's code: they were declared by a worker."""
    sent, pending, other = arrange(with_words)
    shown = cli("jobs", "show", sent)
    assert "SUCCEEDED (sent)" in shown.out
    assert cli("jobs", "show", sent, "--json").json["job"]["word"] == "sent"
    assert cli("jobs", "show", other, "--json").json["job"]["word"] is None
    assert "succeeded (sent)" in cli("jobs", "list").out
    assert "scheduled (pending)" in cli("jobs", "list").out
    assert "SUCCEEDED (sent)" in cli("jobs", "why", sent).out
    assert "It is finished: succeeded (sent)" in cli("jobs", "why", sent).out

    def listed(*words: str) -> list[str]:
        return [job["id"] for job in cli("jobs", "list", *words, "--json").json["jobs"]]

    assert listed("--state", "sent") == [sent]
    assert listed("--state", "pending", "--state", "sent") == [pending, sent]
    assert listed("--state", "succeeded") == [other, sent]
    assert cli("jobs", "cancel", "--state", "pending", "--yes", "--json").json["bulk"]["done"] == 1
    assert listed("--state", "cancelled") == [pending]


def test_f4_a_word_that_is_not_clear_is_refused(cli: Cli, arrange: Arrange[Any]) -> None:
    sent, *_ = arrange(with_words)
    arrange(lambda store: store.declare_kinds([KindRecord(name="mail", words={"dead": "sent"})]))
    answer = cli("jobs", "list", "--state", "sent", "--json")
    assert (answer.code, answer.error["field"]) == (Exit.USAGE, "--state")
    assert "is a word of several kinds, greet, mail" in answer.error["error"]
    chosen = cli("jobs", "list", "--state", "sent", "--kind", "greet", "--json").json["jobs"]
    assert [job["id"] for job in chosen] == [sent]
    odd = cli("jobs", "list", "--state", "shipped", "--json").error["error"]
    assert "states are scheduled, ready" in odd
    assert "words of apps are pending, sent" in odd
    mixed = cli("jobs", "list", "--state", "dead", "--state", "pending", "--json")
    assert "give the kind too" in mixed.error["error"]


def test_c11_the_gates_that_a_job_met_are_shown(arrange: Arrange[JobId], cli: Cli) -> None:
    async def passed(store: Store) -> JobId:
        claim = past_gates(await start(store), await store.now(), "mail:\x1b[31m")
        await apply(store, succeeded(claim, None, ()))
        return claim.job_id

    async def held(store: Store) -> JobId:
        claim = await start(store)
        await apply(store, held_by_rate(claim, await store.now(), HOUR))
        return claim.job_id

    done = arrange(passed)
    shown = cli("jobs", "show", done).out
    assert "#1  budget ai  passed with estimate 0.3 at 2" in shown
    assert "#1  rate mail:" in shown
    assert "\x1b[31m" not in shown
    [record] = cli("jobs", "show", done, "--json").json["gates"]
    assert [(visit["gate"], visit["key"], visit["estimate"]) for visit in record["visits"]] == [
        ("rate", "mail:\x1b[31m", None),
        ("budget", "ai", 0.3),
    ]
    waiting = cli("jobs", "show", arrange(held)).out
    assert "#1  rate mail  held " in waiting
    assert "not passed yet" in waiting
