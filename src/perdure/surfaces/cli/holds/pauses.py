"""`perdure pause`, `perdure resume` and `perdure pauses`: pause jobs, and resume them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Final

import typer
from rich.table import Table
from rich.text import Text

from perdure.domain.gate import Pause
from perdure.errors import ArgumentError
from perdure.operate.commands.foresight import Foreseen
from perdure.operate.commands.holds import Resumed
from perdure.operate.commands.pause_check import PauseCheck
from perdure.operate.desk import Desk
from perdure.operate.wording import listed
from perdure.surfaces.cli import options
from perdure.surfaces.cli.completion import complete_kind, complete_pause, complete_queue
from perdure.surfaces.cli.session import with_desk
from perdure.surfaces.cli.terminal.asking import some
from perdure.surfaces.cli.terminal.hostile import one_line
from perdure.surfaces.cli.terminal.output import console, plain, print_json, say, unpacked, warn
from perdure.surfaces.cli.terminal.pieces import cell, columns
from perdure.surfaces.cli.terminal.reading import read_json
from perdure.surfaces.cli.terminal.times import both, read_time, relative

_GIVES_WAY: Final = {"Queue", "Kind", "Arguments", "By", "Why"}

QueueName = Annotated[str | None, typer.Option("--queue", help="Of this queue.", autocompletion=complete_queue)]
KindName = Annotated[str | None, typer.Option("--kind", help="Of this kind.", autocompletion=complete_kind)]
Args = Annotated[
    str | None, typer.Option("--args", metavar="JSON", help="Only jobs with these argument values; needs --kind.")
]
Until = Annotated[
    str | None,
    typer.Option("--until", metavar="TIME", help="Until 2026-03-01T09:00Z or +2h; default: until resumed."),
]
Ids = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ID", help="Ids of pauses; or choose by options.", show_default=False, autocompletion=complete_pause
    ),
]
Everything = Annotated[bool, typer.Option("--all", help="All pauses.")]


def pause(
    *,
    queue: QueueName = None,
    kind: KindName = None,
    args: Args = None,
    until: Until = None,
    why: options.Why = None,
    url: options.Url = None,
    dry_run: options.DryRun = False,
    as_json: options.Json = False,
) -> None:
    """Pause a queue or kind, optionally until a time.

    Running jobs continue.
    """
    if queue is None and kind is None:
        raise ArgumentError("--queue", "or --kind must be given; to stop all workers use perdure quiet --all")
    if args is not None and kind is None:
        raise ArgumentError("--args", "needs --kind: only jobs of one kind have the same arguments")
    wanted = None if args is None else _arguments(args)
    moment = None if until is None else read_time("--until", until)

    async def look(desk: Desk) -> tuple[Foreseen, PauseCheck]:
        end = None if moment is None else moment.when(await desk.now())
        foreseen = await desk.holds.preview_pause(queue=queue, kind=kind, args=wanted, until=end)
        return foreseen, await desk.holds.check_pause(foreseen.pauses[0])

    async def act(desk: Desk) -> tuple[Pause, PauseCheck, datetime]:
        now = await desk.now()
        end = None if moment is None else moment.when(now)
        made = await desk.holds.pause(queue=queue, kind=kind, args=wanted, until=end, why=why)
        return made, await desk.holds.check_pause(made), now

    if dry_run:
        foreseen, check = with_desk(url, look)
        what = f"{_what(foreseen.pauses[0])} would be paused"
        return _foretell("paused", foreseen, what, "held", as_json=as_json, check=check)
    made, check, now = with_desk(url, act)
    if as_json:
        print_json({"action": "paused", "dry_run": False, "pause": _document(made), **_checked(check)})
        return None
    end = "until it is resumed" if made.until is None else f"until {both(made.until, now)}"
    say(f"{_what(made)} paused, {end}.", "bold")
    _warn(check)
    if check.others:
        say("To end all of them:", "dim")
    say(f"  perdure resume {' '.join((made.id, *(other.id for other in check.others)))}", "dim")
    return None


def resume(
    ids: Ids = None,
    *,
    queue: QueueName = None,
    kind: KindName = None,
    everything: Everything = False,
    why: options.Why = None,
    url: options.Url = None,
    dry_run: options.DryRun = False,
    as_json: options.Json = False,
) -> None:
    """End pauses, by id, or all that name a queue or kind."""
    if [bool(ids), queue is not None or kind is not None, everything].count(True) != 1:
        raise ArgumentError("ID", "of a pause, or --queue and --kind, or --all: give one of them, and only one")

    async def look(desk: Desk) -> Foreseen:
        return await desk.holds.preview_resume(ids or (), queue=queue, kind=kind, everything=everything)

    async def act(desk: Desk) -> Resumed:
        return await desk.holds.resume(ids or (), queue=queue, kind=kind, everything=everything, why=why)

    if dry_run:
        foreseen = with_desk(url, look)
        what = f"{some(len(foreseen.pauses), 'pause')} would end"
        return _foretell("resumed", foreseen, what, "ready again", as_json=as_json)
    done = with_desk(url, act)
    if as_json:
        named = [_document(one) for one in done.pauses]
        print_json({"action": "resumed", "dry_run": False, "pauses": named, "jobs": done.jobs})
    elif done.pauses:
        say(f"{some(len(done.pauses), 'pause')} ended, {some(done.jobs, 'held job')} ready again:", "bold")
        for one in done.pauses:
            say(f"  {one.id}  {_what(one)}")
    else:
        say("No such pause: nothing was resumed.", "yellow")
    return None


def pauses(url: options.Url = None, as_json: options.Json = False) -> None:
    """List current pauses, oldest first."""

    async def look(desk: Desk) -> tuple[list[Pause], datetime]:
        return await desk.holds.pauses(), await desk.now()

    found, now = with_desk(url, look)
    if as_json:
        print_json({"pauses": [_document(one) for one in found]})
    elif found:
        console().print(_table(found, now))
    else:
        say("Nothing is paused.", "dim")


def _checked(check: PauseCheck) -> dict[str, Any]:
    return {"warnings": list(check.unknown), "also_held_by": [other.id for other in check.others]}


def _warn(check: PauseCheck) -> None:
    for sentence in check.unknown:
        warn(sentence)
    if check.others:
        many = len(check.others) > 1
        ids = listed(other.id for other in check.others)
        warn(f"{'other pauses' if many else 'another pause'} ({ids}) also hold{'' if many else 's'} these jobs")


def _foretell(
    action: str, foreseen: Foreseen, what: str, then: str, *, as_json: bool, check: PauseCheck | None = None
) -> None:
    """Report a dry run: how many jobs, and the newest of them."""
    if as_json:
        counted = {"jobs": foreseen.jobs, "capped": foreseen.capped, "examples": list(foreseen.examples)}
        more = {} if check is None else _checked(check)
        paused = [_document(one) for one in foreseen.pauses]
        print_json({"action": action, "dry_run": True, "pauses": paused, **counted, **more})
        return
    if check is not None:
        _warn(check)
    say(f"{what}; {'at least ' * foreseen.capped}{some(foreseen.jobs, 'job')} would be {then}.", "bold")
    if action == "resumed":
        for one in foreseen.pauses:
            say(f"  {one.id}  {_what(one)}")
    for job_id in foreseen.examples:
        say(f"  {job_id}")
    if foreseen.jobs > len(foreseen.examples):
        say(f"  … and {foreseen.jobs - len(foreseen.examples):,} more", "dim")


def _table(found: Sequence[Pause], now: datetime) -> Table:
    has_args = any(one.args is not None for one in found)
    more = ("Arguments",) if has_args else ()
    table = columns("ID", "Queue", "Kind", *more, "Since", "Until", "By", "Why", giving_way=_GIVES_WAY)
    for one in found:
        table.add_row(
            Text(one.id),
            cell(one.queue or "any", "" if one.queue else "dim"),
            cell(one.kind or "any", "" if one.kind else "dim"),
            *((cell(one.args or ""),) if has_args else ()),
            Text(relative(one.at, now)),
            Text("resumed" if one.until is None else relative(one.until, now)),
            cell(one.actor, "dim"),
            cell(one.why or "", "dim"),
        )
    return table


def _what(one: Pause) -> str:
    queue = f"queue {one_line(one.queue)}" if one.queue is not None else ""
    kind = f"kind {one_line(one.kind)}" if one.kind is not None else ""
    args = f" with {one_line(one.args, 200)}" if one.args is not None else ""
    return f"{kind}{' in ' if kind and queue else ''}{queue}{args}"


def _document(one: Pause) -> dict[str, Any]:
    return {**plain(one), "args": unpacked(one.args)}


def _arguments(text: str) -> dict[str, Any]:
    value = read_json("--args", text)
    if not isinstance(value, dict) or not value:
        raise ArgumentError("--args", f'must be a JSON object of arguments by name, as {{"n": 1}}, got {text[:100]!r}')
    return value
