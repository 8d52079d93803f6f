"""`perdure workers` and `perdure quiet`: list workers, and tell them to stop claiming."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Final

import typer
from rich.table import Table
from rich.text import Text

from perdure.domain.worker import Phase, WorkerView
from perdure.errors import ArgumentError
from perdure.operate.desk import Desk
from perdure.operate.health.checkup import ASSUMED_LEASE
from perdure.operate.wording import listed
from perdure.surfaces.cli import options
from perdure.surfaces.cli.completion import complete_worker
from perdure.surfaces.cli.session import with_desk
from perdure.surfaces.cli.terminal.asking import some
from perdure.surfaces.cli.terminal.hostile import one_line
from perdure.surfaces.cli.terminal.output import console, plain, print_json, say
from perdure.surfaces.cli.terminal.pieces import cell, columns
from perdure.surfaces.cli.terminal.times import relative

_PHASE_STYLE: Final = {
    Phase.OPENING: "cyan",
    Phase.OPEN: "green",
    Phase.QUIET: "magenta",
    Phase.CLOSING: "yellow",
    Phase.CLOSED: "dim",
}
_WIDE_FROM_COLUMNS: Final = 95
_WORKERS_NAMED: Final = 10

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="WORKER",
        help="Workers, by name or id; or --all.",
        show_default=False,
        autocompletion=complete_worker,
    ),
]
AllLiving = Annotated[bool, typer.Option("--all", help="All running workers.")]
Off = Annotated[bool, typer.Option("--off", help="Let them claim again.")]
AllListed = Annotated[bool, typer.Option("--all", help="Include workers that closed or died, until they are pruned.")]


def workers(url: options.Url = None, every_worker: AllListed = False, as_json: options.Json = False) -> None:
    """List workers with status and last heartbeat."""

    async def look(desk: Desk) -> tuple[list[WorkerView], datetime]:
        return await desk.workers(), await desk.now()

    found, now = with_desk(url, look)
    shown = [worker for worker in found if every_worker or worker.dead_at is None]
    if as_json:
        print_json({"workers": plain(shown)})
    elif shown:
        out = console()
        out.print(_table(shown, now, wide=out.width >= _WIDE_FROM_COLUMNS))
    else:
        say("No workers." if every_worker else "No running workers.", "dim")


def quiet(
    names: Names = None,
    *,
    every_worker: AllLiving = False,
    off: Off = False,
    why: options.Why = None,
    url: options.Url = None,
    dry_run: options.DryRun = False,
    as_json: options.Json = False,
) -> None:
    """Tell running workers to stop claiming; their jobs continue.

    They react within seconds, and stay quiet until --off or a restart.
    """
    if names and every_worker:
        raise ArgumentError("WORKER", "and --all are both given: use one or the other")

    async def act(desk: Desk) -> list[WorkerView]:
        if not names and not every_worker:
            living = [f"{worker.name} (id {worker.id})" for worker in await desk.workers() if worker.dead_at is None]
            there = (
                f"running are {listed(living, most=_WORKERS_NAMED)}" if living else "there are no running workers now"
            )
            raise ArgumentError("WORKER", f"is missing: name workers by name or id, or give --all; {there}")
        return await desk.quiet(names or None, quiet=not off, why=why, dry_run=dry_run)

    what = "told to claim again" if off else "told to stop claiming"
    _report(with_desk(url, act), what, dry_run=dry_run, as_json=as_json)


def _report(asked: Sequence[WorkerView], what: str, *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        named = [{"id": worker.id, "name": worker.name} for worker in asked]
        print_json({"action": what, "dry_run": dry_run, "workers": named})
    elif asked:
        say(f"{some(len(asked), 'worker')} {'would be ' * dry_run}{what}:", "bold")
        for worker in asked:
            say(f"  {one_line(worker.name)}  (id {worker.id}, {some(worker.running, 'job')} running)")
    else:
        say(f"No worker {'would be' if dry_run else 'was'} {what}.", "yellow")


def _table(found: Sequence[WorkerView], now: datetime, *, wide: bool) -> Table:
    more = ("Quiet", "Version") if wide else ()
    table = columns("Name", "ID", "Phase", "Queues", "Jobs", "Since", "Last beat", *more, giving_way={"Name", "Queues"})
    for worker in found:
        silent = worker.dead_at is None and now - worker.beat_at > ASSUMED_LEASE
        table.add_row(
            cell(worker.name),
            Text(str(worker.id)),
            _phase(worker),
            cell(", ".join(worker.queues), "dim"),
            Text(f"{worker.running}/{worker.concurrency}"),
            Text(relative(worker.started_at, now)),
            Text(relative(worker.beat_at, now), style="yellow" if silent else ""),
            *((_quiet(worker, now), cell(worker.version, "dim")) if wide else ()),
        )
    return table


def _phase(worker: WorkerView) -> Text:
    if worker.dead_at is not None and worker.phase is not Phase.CLOSED:
        return Text("dead", style="bold red")
    asked = worker.quiet_at is not None and worker.phase in {Phase.OPENING, Phase.OPEN}
    return Text(f"{worker.phase} → quiet" if asked else worker.phase, style=_PHASE_STYLE.get(worker.phase, ""))


def _quiet(worker: WorkerView, now: datetime) -> Text:
    return Text("" if worker.quiet_at is None else relative(worker.quiet_at, now))
