"""`perdure schedules`: list schedules, make them and act on them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

import typer

from perdure.app.schedules import checked_schedule, one_expression
from perdure.domain.jobs.ids import new_job_id
from perdure.domain.jobs.job import DEFAULT_PRIORITY, DEFAULT_QUEUE, NewJob
from perdure.domain.schedule import Fire, Missed, Overlap, ScheduleView
from perdure.errors import ArgumentError
from perdure.kinds.encoding import encode
from perdure.kinds.options import checked_name, checked_priority
from perdure.operate.commands.calendar import ScheduleDetail
from perdure.operate.desk import Desk
from perdure.surfaces.cli import options
from perdure.surfaces.cli.completion import complete_kind, complete_queue, complete_schedule
from perdure.surfaces.cli.deletion import Deletion
from perdure.surfaces.cli.exits import Exit
from perdure.surfaces.cli.schedules.schedule_page import show_schedule
from perdure.surfaces.cli.schedules.schedule_table import Jobs, is_overdue, jobs_of, schedule_document, show_schedules
from perdure.surfaces.cli.session import with_desk
from perdure.surfaces.cli.terminal.asking import agreed, require_terminal, some
from perdure.surfaces.cli.terminal.hostile import one_line
from perdure.surfaces.cli.terminal.output import plain, print_json, say
from perdure.surfaces.cli.terminal.reading import read_json
from perdure.surfaces.cli.terminal.times import both, read_time

schedules = typer.Typer(help="List schedules; create, pause, trigger or delete them.", no_args_is_help=True)

TIMES_WITHOUT_QUESTION: Final = 100
_RECORDS_COUNTED: Final = 500
_ARGUMENTS_LIMIT_BYTES: Final = 64 * 1024
_TIMES: Final = "When"
_JOB: Final = "Which job"

Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="The schedule's name.", show_default=False, autocompletion=complete_schedule),
]
Shown = Annotated[
    int, typer.Option("--limit", min=1, max=500, help="Show this many next times, and as many past ones.")
]
Kind = Annotated[
    str,
    typer.Option(
        "--kind",
        help="The kind of its jobs. Not checked: only the app's code knows.",
        rich_help_panel=_JOB,
        autocompletion=complete_kind,
    ),
]
Args = Annotated[
    str, typer.Option("--args", metavar="JSON", help="Their arguments, a JSON object.", rich_help_panel=_JOB)
]
QueueName = Annotated[
    str, typer.Option("--queue", help="Their queue.", rich_help_panel=_JOB, autocompletion=complete_queue)
]
Priority = Annotated[int, typer.Option("--priority", help="Their priority, 0 to 9.", rich_help_panel=_JOB)]
Cron = Annotated[
    str | None,
    typer.Option(
        "--cron", metavar="EXPR", help='Five fields, or six with seconds first, or "@daily".', rich_help_panel=_TIMES
    ),
]
Every = Annotated[
    str | None, typer.Option("--every", metavar="SPAN", help="Instead of cron: 90s, 2h.", rich_help_panel=_TIMES)
]
Zone = Annotated[str, typer.Option("--tz", metavar="ZONE", help="The time zone of its times.", rich_help_panel=_TIMES)]
MissedPolicy = Annotated[
    Missed, typer.Option("--missed", help="What to do about times at which no worker ran.", rich_help_panel=_TIMES)
]
Within = Annotated[
    str | None,
    typer.Option(
        "--within",
        metavar="SPAN",
        help="How late a time may still be handled.",
        show_default="1m with --missed skip, else 1d",
        rich_help_panel=_TIMES,
    ),
]
OverlapPolicy = Annotated[
    Overlap,
    typer.Option("--overlap", help="What to do while its previous job is not finished.", rich_help_panel=_TIMES),
]
Jitter = Annotated[
    str,
    typer.Option(
        "--jitter", metavar="SPAN", help="Its jobs run up to this much later, at random.", rich_help_panel=_TIMES
    ),
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="Until 2026-03-01T09:00Z or +2h; default: until resumed.")
]
From = Annotated[str, typer.Option("--from", metavar="START", help="From this time: 2026-03-01T09:00Z or -7d.")]
To = Annotated[str, typer.Option("--to", metavar="END", help="Up to but not including this time.")]


@schedules.command("list")
def list_schedules(url: options.Url = None, as_json: options.Json = False) -> None:
    """List schedules by name, with their next and last times."""

    async def look(desk: Desk) -> tuple[list[ScheduleDetail], Jobs, datetime]:
        found = await desk.calendar.details()
        return found, await jobs_of(desk, found), await desk.now()

    show_schedules(*with_desk(url, look), as_json=as_json)


@schedules.command("show")
def show(name: Name, url: options.Url = None, limit: Shown = 5, as_json: options.Json = False) -> None:
    """Show one schedule in full: its next times, and the outcome of the last ones."""

    async def look(desk: Desk) -> tuple[ScheduleDetail, Jobs, datetime]:
        detail = await desk.calendar.schedule(name, shown=limit)
        return detail, await jobs_of(desk, [detail]), await desk.now()

    show_schedule(*with_desk(url, look), as_json=as_json)


@schedules.command("create")
def create(
    name: Name,
    *,
    kind: Kind,
    cron: Cron = None,
    every: Every = None,
    tz: Zone = "UTC",
    missed: MissedPolicy = Missed.SKIP,
    within: Within = None,
    overlap: OverlapPolicy = Overlap.SKIP,
    jitter: Jitter = "0s",
    queue: QueueName = DEFAULT_QUEUE,
    priority: Priority = DEFAULT_PRIORITY,
    args: Args = "{}",
    url: options.Url = None,
    why: options.Why = None,
    as_json: options.Json = False,
) -> None:
    """Create or replace a schedule.

    Replaces any existing definition, unless it is declared in code.

    Only the app's code knows kinds and their arguments, so neither is checked.
    """
    if (cron is None) is (every is None):
        raise ArgumentError("--cron", "or --every must be given, and not both")
    job = NewJob(
        id=new_job_id(),
        kind=checked_name("--kind", kind),
        args=_arguments(args),
        queue=checked_name("--queue", queue),
        priority=checked_priority(priority),
    )
    schedule = checked_schedule(
        name,
        job,
        one_expression(cron, every),
        tz=tz,
        missed=missed,
        within=within,
        overlap=overlap,
        jitter=jitter,
    )

    async def make(desk: Desk) -> tuple[ScheduleView, datetime]:
        return await desk.calendar.save(schedule, why=why), await desk.now()

    view, now = with_desk(url, make)
    _report("made" if view.version == 1 else "changed", view, now, as_json=as_json)


@schedules.command("pause")
def pause(
    name: Name,
    url: options.Url = None,
    until: Until = None,
    why: options.Why = None,
    as_json: options.Json = False,
) -> None:
    """Pause a schedule, optionally until a time."""
    moment = None if until is None else read_time("--until", until)

    async def act(desk: Desk) -> tuple[ScheduleView, datetime]:
        now = await desk.now()
        end = None if moment is None else moment.when(now)
        return await desk.calendar.pause(name, until=end, why=why), now

    _report("paused", *with_desk(url, act), as_json=as_json)


@schedules.command("resume")
def resume(name: Name, url: options.Url = None, why: options.Why = None, as_json: options.Json = False) -> None:
    """Resume a schedule with its next time."""

    async def act(desk: Desk) -> tuple[ScheduleView, datetime]:
        return await desk.calendar.resume(name, why=why), await desk.now()

    _report("resumed", *with_desk(url, act), as_json=as_json)


@schedules.command("trigger")
def trigger(name: Name, url: options.Url = None, why: options.Why = None, as_json: options.Json = False) -> None:
    """Enqueue its job now, in addition to its regular times."""

    async def act(desk: Desk) -> Fire:
        return await desk.calendar.trigger(name, why=why)

    fire = with_desk(url, act)
    if as_json:
        print_json({"action": "triggered", "fire": plain(fire)})
    else:
        say(f"{one_line(name)} triggered: job {fire.job_id}", "bold")


@schedules.command("backfill")
def backfill(
    name: Name,
    *,
    start: From,
    end: To,
    url: options.Url = None,
    why: options.Why = None,
    yes: options.Yes = False,
    dry_run: options.DryRun = False,
    as_json: options.Json = False,
) -> None:
    """Enqueue the jobs of a range of past times.

    Times already handled, with or without a job, are skipped.

    Asks before it makes more than 100 jobs.
    """
    first, last = read_time("--from", start), read_time("--to", end)

    async def act(desk: Desk) -> tuple[int, list[Fire]]:
        now = await desk.now()
        begin, until = first.when(now), last.when(now)
        times = len(await desk.calendar.nominal_times(name, begin, until))
        if dry_run or (times > TIMES_WITHOUT_QUESTION and not yes and not _agreed(name, times, as_json=as_json)):
            return times, []
        return times, await desk.calendar.backfill(name, begin, until, why=why)

    times, fires = with_desk(url, act)
    if as_json:
        print_json({"action": "backfilled", "dry_run": dry_run, "times": times, "fires": plain(fires)})
    elif dry_run:
        say(f"Would enqueue up to {some(times, 'run')} of {one_line(name)}; times already handled are skipped.", "bold")
    elif fires:
        before = f"; {times - len(fires):,} were already handled" if times > len(fires) else ""
        say(f"{some(len(fires), 'job')} made for {some(times, 'nominal time')} of {one_line(name)}{before}.", "bold")
    else:
        say(f"No job was made for the {some(times, 'nominal time')} in this range.", "yellow")
    raise typer.Exit(Exit.OK if fires or dry_run else Exit.CONFLICT)


@schedules.command("delete")
def delete(
    name: Name,
    url: options.Url = None,
    why: options.Why = None,
    yes: options.Yes = False,
    dry_run: options.DryRun = False,
    as_json: options.Json = False,
) -> None:
    """Delete a schedule and the record of its times; its jobs stay.

    One declared in code comes back with the next worker: pause it instead.
    """
    Deletion(
        name=one_line(name),
        question=f"Schedule {one_line(name)} and the record of its times will be deleted",
        look=lambda desk: desk.calendar.schedule(name, shown=1),
        delete=lambda desk: desk.calendar.delete(name, why=why),
        document={"name": name},
        foretell=lambda desk: _goes_with(desk, name),
    ).carry_out(url, yes=yes, as_json=as_json, dry_run=dry_run)


async def _goes_with(desk: Desk, name: str) -> dict[str, str]:
    """What a deletion takes with it: the job of the next time, and the record of past ones."""
    detail = await desk.calendar.schedule(name, shown=_RECORDS_COUNTED)
    view, past = detail.view, len(detail.fires)
    now = await desk.now()
    return {
        "kind": one_line(view.schedule.kind),
        "next_time": "none" if view.next_at is None else both(view.next_at, now),
        "recorded_times": f"{'at least ' * (past == _RECORDS_COUNTED)}{past:,}",
    }


def _arguments(text: str) -> str:
    value = read_json("--args", text)
    if not isinstance(value, dict):
        raise ArgumentError("--args", f'must be a JSON object of arguments by name, as {{"n": 1}}, got {text[:100]!r}')
    encoded = encode(value)
    if len(encoded.encode()) > _ARGUMENTS_LIMIT_BYTES:
        raise ArgumentError("--args", f"takes {len(encoded.encode())} bytes, {_ARGUMENTS_LIMIT_BYTES} are allowed")
    return encoded


def _agreed(name: str, times: int, *, as_json: bool) -> bool:
    require_terminal(as_json=as_json, hint=f" and {some(times, 'nominal time')} may each make a job")
    return agreed(f"Up to {some(times, 'job')} of schedule {one_line(name)} will be made")


def _report(done: str, view: ScheduleView, now: datetime, *, as_json: bool) -> None:
    if as_json:
        print_json({"action": done, "schedule": schedule_document(view)})
        return
    if view.next_at is None:
        coming = "no next time until it is resumed" if view.paused_at else "no future time"
    else:
        coming = f"{'due' if is_overdue(view.next_at, now) else 'next'} {both(view.next_at, now)}"
    say(f"{one_line(view.name)} {done}, {coming}", "bold")
