"""`perdure schedules` and `perdure jobs reschedule`: for people and for scripts, with their exit codes, on both."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.support.builders.jobs import DAY, HOUR, MINUTE, apply, claim_one, employ, enqueue, job_in, show
from tests.support.databases.behind import query
from tests.surfaces.cli.terminal.test_asking import at_a_terminal
from tests.surfaces.conftest import Arrange, Cli, run_cli

from perdure.domain.jobs.ids import JobId, new_job_id
from perdure.domain.jobs.job import JobView
from perdure.domain.jobs.states import JobState
from perdure.domain.jobs.transition import succeeded
from perdure.domain.operate.audit import By
from perdure.domain.schedule import Advance, Firing, Overlap, Schedule, ScheduleView
from perdure.storage.port import Store
from perdure.storage.schedules import Timed
from perdure.surfaces.cli.exits import Exit

NASTY = "[red]k\x1b]0;owned\x07\x9b2J\u202e\r\nforged"
NIGHTLY = ("schedules", "create", "nightly", "--kind", "report", "--cron", "0 2 * * *", "--tz", "Europe/Berlin")


@pytest.fixture
def nightly(cli: Cli, arrange: Arrange[None]) -> str:
    """A schedule that was made by the command line."""
    arrange(lambda store: store.check_schema())
    assert cli(*NIGHTLY, "--args", '{"who": "ops"}', "--missed", "once").code == Exit.OK
    return "nightly"


def keep(schedule: Schedule, next_at: datetime | None = None) -> Any:
    """Something that stores a schedule by another way than the command line."""
    return lambda store: store.save_schedule(Timed(schedule, next_at), By("test"))


def stored(arrange: Arrange[Any], name: str) -> ScheduleView:
    view: ScheduleView = arrange(lambda store: store.schedule(name))
    return view


def test_an_empty_list_is_no_error(cli: Cli, arrange: Arrange[None]) -> None:
    arrange(lambda store: store.check_schema())
    assert cli("schedules", "list").out == "No schedules.\n"
    assert cli("schedules", "list", "--json").json == {"schedules": []}


def test_create_stores_what_was_said(cli: Cli, arrange: Arrange[Any], nightly: str) -> None:
    words = ("--within", "6h", "--overlap", "queue", "--jitter", "5m", "--queue", "slow", "--priority", "7")
    answer = cli(*NIGHTLY[:-2], *words, "--json")
    assert (answer.code, answer.json["action"]) == (Exit.OK, "changed")
    schedule = stored(arrange, nightly).schedule
    assert (schedule.kind, schedule.expression, schedule.tz, schedule.args) == ("report", "0 2 * * *", "UTC", "{}")
    assert (schedule.within, schedule.overlap, schedule.jitter) == (6 * HOUR, Overlap.QUEUE, 5 * MINUTE)
    assert (schedule.queue, schedule.priority) == ("slow", 7)
    assert (answer.json["schedule"]["within"], answer.json["schedule"]["jitter"]) == ("6h", "5m")


def test_create_for_people_shows_the_next_time(cli: Cli, arrange: Arrange[None]) -> None:
    arrange(lambda store: store.check_schema())
    answer = cli("schedules", "create", "sweep", "--kind", "sweep", "--every", "2h")
    assert answer.code == Exit.OK
    assert answer.out.startswith("sweep made, next 20")
    assert "(in " in answer.out


def test_what_is_declared_in_code_is_not_changed_from_outside(cli: Cli, arrange: Arrange[None]) -> None:
    declared = Timed(Schedule(name="nightly", kind="report", expression="@daily"), None)
    arrange(lambda store: store.declare_schedules([declared]))
    answer = cli(*NIGHTLY, "--json")
    assert answer.code == Exit.CONFLICT
    assert "nightly" in answer.error["error"]
    assert "declared in code" in cli("schedules", "show", "nightly").out


def test_list_and_show_show_everything(cli: Cli, engine_url: str, nightly: str) -> None:
    plain = cli("schedules", "list")
    assert plain.code == Exit.OK
    for piece in ("nightly", "0 2 * * *  Europe/Berlin", "in ", "never"):
        assert piece in plain.out
    assert "\x1b" not in plain.out
    wide = run_cli("schedules", "list", env={"PERDURE_URL": engine_url, "COLUMNS": "130"})
    assert "Overlap" in wide.out
    assert ":00:00Z  (in " in wide.out
    [document] = cli("schedules", "list", "--json").json["schedules"]
    assert (document["name"], document["missed"], document["args"]) == ("nightly", "once", {"who": "ops"})
    page = cli("schedules", "show", nightly).out
    for piece in ("Europe/Berlin", "report", "once, within 1d", "made at run time", '"who": "ops"', "02:00:00 CE"):
        assert piece in page
    shown = cli("schedules", "show", nightly, "--limit", "3", "--json").json["schedule"]
    assert len(shown["upcoming"]) == 3
    assert shown["upcoming"][0] == shown["next_at"]


def test_no_line_of_the_list_wraps_on_a_usual_terminal(engine_url: str, cli: Cli, nightly: str) -> None:
    assert cli("schedules", "create", "n" * 100, "--kind", "k", "--cron", "*/5 * * * *", "--tz", "UTC").code == Exit.OK
    for columns in (80, 100):
        out = run_cli("schedules", "list", env={"PERDURE_URL": engine_url, "COLUMNS": str(columns)}).out
        assert len(out.splitlines()) == 3
        assert max(len(line) for line in out.splitlines()) <= columns


def test_times_and_ids_of_the_page_are_whole_on_a_usual_terminal(
    cli: Cli, engine_url: str, arrange: Arrange[Any], nightly: str
) -> None:
    assert cli("schedules", "backfill", nightly, "--from", "-3d", "--to", "now").code == Exit.OK
    assert cli("schedules", "trigger", nightly).code == Exit.OK
    fires = arrange(lambda store: store.fires(nightly, 5))
    assert len(fires) == 4
    for columns in (80, 100):
        out = run_cli("schedules", "show", nightly, env={"PERDURE_URL": engine_url, "COLUMNS": str(columns)}).out
        for fire in fires:
            [line] = [line for line in out.splitlines() if line.rstrip().endswith(fire.job_id)]
            assert line.startswith(f"  {fire.nominal_at.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}  ")
            assert len(line.rstrip()) <= columns


def test_a_time_that_no_process_handles_is_not_called_the_next(cli: Cli, arrange: Arrange[Any]) -> None:
    schedule = Schedule(name="s", kind="report", expression="0 2 * * *")
    arrange(keep(schedule, datetime(2020, 1, 1, 2, tzinfo=UTC)))
    headline = cli("schedules", "show", "s").out.splitlines()[0]
    assert "  due " in headline
    assert headline.endswith("d ago, no worker has handled it")
    assert "  due " in cli("schedules", "list").out
    changed = cli("schedules", "create", "s", "--kind", "other", "--cron", "0 2 * * *").out
    assert "s changed, due 2020-01-01 02:00:00Z" in changed


def test_pause_and_resume(cli: Cli, arrange: Arrange[Any], nightly: str) -> None:
    assert cli("schedules", "pause", nightly).code == Exit.OK
    assert stored(arrange, nightly).next_at is None
    assert "paused" in cli("schedules", "list").out
    assert "PAUSED  until it is resumed" in cli("schedules", "show", nightly).out
    before: datetime = arrange(lambda store: store.now())
    answer = cli("schedules", "pause", nightly, "--until", "+2d", "--json")
    after: datetime = arrange(lambda store: store.now())
    until = datetime.fromisoformat(answer.json["schedule"]["paused_until"])
    assert before + 2 * DAY <= until <= after + 2 * DAY
    assert "paused, in " in cli("schedules", "list").out
    assert cli("schedules", "resume", nightly).code == Exit.OK
    view = stored(arrange, nightly)
    assert (view.paused_at, view.next_at is None) == (None, False)


def test_one_that_is_not_paused_is_not_resumed(cli: Cli, nightly: str) -> None:
    answer = cli("schedules", "resume", nightly, "--json")
    assert (answer.code, answer.out) == (Exit.CONFLICT, "")
    assert answer.error["error"] == f"schedule {nightly!r} is not paused"


def test_trigger_makes_a_job_now(cli: Cli, arrange: Arrange[Any], nightly: str) -> None:
    job_id = cli("schedules", "trigger", nightly, "--json").json["fire"]["job_id"]
    job: JobView = arrange(lambda store: show(store, job_id))
    assert (job.kind, json.loads(job.args), job.state) == ("report", {"who": "ops"}, JobState.READY)
    assert "triggered: job " in cli("schedules", "trigger", nightly).out
    page = cli("schedules", "show", nightly).out
    assert "hand" in page
    assert job_id in page
    assert ", ready" in cli("schedules", "list").out


def test_e4_a_job_that_is_done_with_warnings_is_marked_on_its_schedule(
    cli: Cli, arrange: Arrange[Any], nightly: str
) -> None:
    job_id = cli("schedules", "trigger", nightly, "--json").json["fire"]["job_id"]

    async def warn(store: Store) -> None:
        await apply(
            store, succeeded(await claim_one(store, await employ(store)), None, ("step shots gave up: OSError",))
        )

    arrange(warn)
    assert ", succeeded (!)" in cli("schedules", "list").out
    [line] = [line for line in cli("schedules", "show", nightly).out.splitlines() if line.rstrip().endswith(job_id)]
    assert "succeeded (!)" in line
    [fire] = cli("schedules", "show", nightly, "--json").json["schedule"]["fires"]
    assert (fire["job_state"], fire["job_warnings"]) == ("succeeded", ["step shots gave up: OSError"])


def test_what_became_of_a_time_without_a_job_is_reported(cli: Cli, arrange: Arrange[Any], nightly: str) -> None:
    async def miss(store: Store) -> None:
        view = await store.schedule(nightly)
        assert view is not None
        assert view.next_at is not None
        missed = Firing(nominal_at=view.next_at - 24 * HOUR, job=None)
        step = Advance(
            name=nightly,
            version=view.version,
            overlap=view.schedule.overlap,
            expected=view.next_at,
            next_at=view.next_at,
            firings=(missed,),
        )
        await store.fire([step])

    arrange(miss)
    assert ", missed" in cli("schedules", "list").out
    [fire] = cli("schedules", "show", nightly, "--json").json["schedule"]["fires"]
    assert (fire["fate"], fire["job_id"], fire["job_state"]) == ("missed", None, None)


def test_backfill_makes_each_job_once(cli: Cli, arrange: Arrange[Any], nightly: str) -> None:
    words = ("schedules", "backfill", nightly, "--from", "2026-01-01T00:00Z", "--to", "2026-01-11T00:00+00:00")
    foreseen = cli(*words, "--dry-run", "--json")
    assert (foreseen.code, foreseen.json["times"], foreseen.json["fires"]) == (Exit.OK, 10, [])
    done = cli(*words, "--json")
    assert (done.code, len(done.json["fires"])) == (Exit.OK, 10)
    again = cli(*words)
    assert again.code == Exit.CONFLICT
    assert "No job was made for the 10 nominal times" in again.out
    assert len(cli("jobs", "list", "--tag", "schedule:nightly", "--json").json["jobs"]) == 10


def test_a_long_backfill_needs_a_yes(cli: Cli, engine_url: str, nightly: str) -> None:
    words = ("schedules", "backfill", nightly, "--from", "2025-01-01T00:00Z", "--to", "2025-05-01T00:00Z")
    for refused in (cli(*words), cli(*words, "--json")):
        assert refused.code == Exit.USAGE
        assert "120 nominal times" in refused.err
    code, screen = at_a_terminal(engine_url, "n\n", *words)
    assert (code, "Up to 120 jobs of schedule nightly will be made" in screen) == (Exit.CONFLICT, True)
    assert cli("jobs", "list", "--json").json["jobs"] == []
    done = cli(*words, "--yes")
    assert (done.code, "120 jobs made for 120 nominal times" in done.out) == (Exit.OK, True)


def test_delete_asks_first(cli: Cli, arrange: Arrange[Any], engine_url: str, nightly: str) -> None:
    assert cli("schedules", "delete", nightly).code == Exit.USAGE
    code, screen = at_a_terminal(engine_url, "n\n", "schedules", "delete", nightly)
    assert (code, "Nothing was deleted" in screen) == (Exit.CONFLICT, True)
    assert stored(arrange, nightly)
    entries = query(engine_url, "SELECT actor FROM {audit}")
    said = cli("schedules", "delete", nightly, "--dry-run").out.splitlines()
    assert said[0] == f"{nightly} would be deleted:"
    assert [line.split("  ")[1] for line in said[1:]] == ["kind", "next time", "recorded times"]
    foretold = cli("schedules", "delete", nightly, "--dry-run", "--json").json
    assert (foretold["dry_run"], foretold["name"], foretold["recorded_times"]) == (True, nightly, "0")
    assert cli("schedules", "delete", "nowhere", "--dry-run").code == Exit.NOT_FOUND
    assert stored(arrange, nightly)
    assert query(engine_url, "SELECT actor FROM {audit}") == entries
    done = cli("schedules", "delete", nightly, "--yes", "--json").json
    assert done == {"action": "deleted", "dry_run": False, "name": nightly}
    assert arrange(lambda store: store.schedule(nightly)) is None


def test_who_did_it_is_on_record(cli: Cli, engine_url: str, nightly: str) -> None:
    assert cli("schedules", "pause", nightly).code == Exit.OK
    actors = [actor for (actor,) in query(engine_url, "SELECT actor FROM {audit}")]
    assert len(actors) == 2
    assert all(actor.startswith("cli:") for actor in actors)


@pytest.mark.parametrize(
    "words",
    [
        ("show", "other"),
        ("pause", "other"),
        ("resume", "other"),
        ("trigger", "other"),
        ("backfill", "other", "--from", "-1d", "--to", "now"),
        ("delete", "other", "--yes"),
    ],
)
def test_a_schedule_that_is_not_there_is_named(cli: Cli, nightly: str, words: tuple[str, ...]) -> None:
    answer = cli("schedules", *words, "--json")
    assert (answer.code, answer.out) == (Exit.NOT_FOUND, "")
    assert "'other'" in answer.error["error"]


MAKE = ("create", "x", "--kind", "k")


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("create", "x", "--cron", "@daily"), "--kind"),
        (MAKE, "--cron"),
        ((*MAKE, "--cron", "@daily", "--every", "5m"), "--cron"),
        ((*MAKE, "--cron", "61 * * * *"), "--cron"),
        ((*MAKE, "--every", "0s"), "--every"),
        ((*MAKE, "--cron", "@daily", "--tz", "Mars/Olympus"), "--tz"),
        ((*MAKE, "--every", "5m", "--tz", "Mars/Olympus"), "--tz"),
        ((*MAKE, "--cron", "@daily", "--missed", "twice"), "--missed"),
        ((*MAKE, "--cron", "@daily", "--overlap", "maybe"), "--overlap"),
        ((*MAKE, "--cron", "@daily", "--within", "0s"), "--within"),
        ((*MAKE, "--cron", "@daily", "--jitter", "soon"), "--jitter"),
        ((*MAKE, "--cron", "@daily", "--priority", "10"), "--priority"),
        ((*MAKE, "--cron", "@daily", "--queue", ""), "--queue"),
        ((*MAKE, "--cron", "@daily", "--args", "[1]"), "--args"),
        ((*MAKE, "--cron", "@daily", "--args", "{oops"), "--args"),
        ((*MAKE, "--cron", "@daily", "--args", json.dumps({"text": "x" * 70_000})), "--args"),
        (("create", "", "--kind", "k", "--cron", "@daily"), "NAME"),
        (("show", "nightly", "--limit", "0"), "--limit"),
        (("pause", "nightly", "--until", "tomorrow"), "--until"),
        (("pause", "nightly", "--until", "2099-01-01T00:00"), "--until"),
        (("pause", "nightly", "--until", "-1h"), "--until"),
        (("backfill", "nightly", "--to", "now"), "--from"),
        (("backfill", "nightly", "--from", "0001-01-01T00:00Z", "--to", "now"), "--from"),
        (("backfill", "nightly", "--from", "-1d", "--to", "-2d"), "--to"),
        (("backfill", "nightly", "--from", "-1d", "--to", "+2d"), "--to"),
        (("backfill", "nightly", "--from", "1970-01-01T00:00Z", "--to", "now"), "--from"),
    ],
)
def test_bad_input_names_the_field(cli: Cli, nightly: str, words: tuple[str, ...], field: str) -> None:
    answer = cli("schedules", *words, "--json")
    assert (answer.code, answer.out) == (Exit.USAGE, "")
    assert answer.error["field"] == field
    assert len(answer.error["error"]) < 500
    plain = cli("schedules", *words)
    assert plain.code == Exit.USAGE
    assert plain.err.startswith(f"error: {field} ") or "Missing option" in plain.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*MAKE, "--every", "0s"), "--every must be at least 1s, got 0s"),
        ((*MAKE, "--every", "@daily"), "--every is not a duration: '@daily'; write it as \"90s\""),
        ((*MAKE, "--every", "1d", "--args", "{oops"), "quote it for the shell, as '{\"n\": 1}'"),
        (("backfill", "nightly", "--from", "-1d", "--to", "-2d"), "--to must be later than the start, got "),
    ],
)
def test_bad_input_is_reported_by_the_words_that_one_types(
    cli: Cli, nightly: str, words: tuple[str, ...], said: str
) -> None:
    assert said in cli("schedules", *words).err


def test_an_expression_that_cannot_be_read_is_shown_as_such(cli: Cli, arrange: Arrange[Any]) -> None:
    arrange(keep(Schedule(name="odd", kind="report", expression="@lunar")))
    assert "cannot be read" in cli("schedules", "list").out
    assert "CANNOT BE READ" in cli("schedules", "show", "odd").out
    assert "@lunar" in cli("schedules", "show", "odd", "--json").json["schedule"]["unreadable"]


def test_hostile_schedules_cannot_write_to_the_terminal(cli: Cli, arrange: Arrange[Any]) -> None:
    args = json.dumps({"text": NASTY})
    arrange(keep(Schedule(name=NASTY, kind=NASTY, expression=NASTY, tz=NASTY, args=args, queue=NASTY)))
    readable = Schedule(name=NASTY + "2", kind=NASTY, expression="@daily", args=args, queue=NASTY)
    arrange(keep(readable, datetime(2030, 1, 1, tzinfo=UTC)))
    look = ("schedules", "list"), ("schedules", "show", NASTY), ("schedules", "show", NASTY + "2")
    act = ("pause", "resume", "trigger")
    for words in (*look, *(("schedules", verb, NASTY + "2") for verb in act), ("schedules", "delete", NASTY, "--yes")):
        for answer in (cli(*words), cli(*words, "--json")):
            assert not set("\x1b\x07\x9b\u202e\r") & set(answer.out + answer.err)
            assert "\nforged" not in answer.out + answer.err


@pytest.fixture
def parked(arrange: Arrange[JobId]) -> JobId:
    """A job for later."""
    return arrange(lambda store: enqueue(store, delay=HOUR))


def test_reschedule_to_a_time(cli: Cli, arrange: Arrange[Any], parked: JobId) -> None:
    answer = cli("jobs", "reschedule", parked, "--at", "2099-01-01T02:00+02:00", "--json")
    assert (answer.code, answer.json["action"], answer.json["ids"]) == (Exit.OK, "rescheduled", [parked])
    job: JobView = arrange(lambda store: show(store, parked))
    assert (job.state, job.due_at) == (JobState.SCHEDULED, datetime(2099, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize("when", [("--in", "3h"), ("--at", "+3h")])
def test_reschedule_by_a_span_counts_from_the_databases_now(
    cli: Cli, arrange: Arrange[Any], parked: JobId, when: tuple[str, str]
) -> None:
    before: datetime = arrange(lambda store: store.now())
    answer = cli("jobs", "reschedule", parked, *when)
    after: datetime = arrange(lambda store: store.now())
    assert (answer.code, "1 job rescheduled" in answer.out) == (Exit.OK, True)
    job: JobView = arrange(lambda store: show(store, parked))
    assert job.due_at is not None
    assert before + 3 * HOUR <= job.due_at <= after + 3 * HOUR


def test_reschedule_by_options_means_scheduled_jobs(cli: Cli, arrange: Arrange[Any], parked: JobId) -> None:
    dead = arrange(lambda store: job_in(JobState.DEAD, store))
    assert cli("jobs", "reschedule", "--all", "--in", "3h").code == Exit.USAGE
    done = cli("jobs", "reschedule", "--kind", "greet", "--in", "3h", "--yes", "--json").json
    assert (done["jobs"], done["bulk"]["done"]) == (1, 1)
    refused = cli("jobs", "reschedule", dead, "--in", "3h", "--json")
    assert refused.code == Exit.CONFLICT
    assert "it is dead" in refused.error["error"]


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ((), "--at"),
        (("--at", "+1h", "--in", "1h"), "--at"),
        (("--in", "-1h"), "--in"),
        (("--at", "noon"), "--at"),
        (("--at", "2099-01-01T00:00"), "--at"),
    ],
)
def test_reschedule_needs_one_time(cli: Cli, parked: JobId, words: tuple[str, ...], field: str) -> None:
    answer = cli("jobs", "reschedule", parked, *words, "--json")
    assert (answer.code, answer.error["field"]) == (Exit.USAGE, field)


def test_reschedule_of_a_job_that_is_not_there(cli: Cli, parked: JobId) -> None:
    assert cli("jobs", "reschedule", str(new_job_id()), "--in", "1h").code == Exit.NOT_FOUND
