"""`perdure enqueue`: enqueue a job by hand. The app's code checks the arguments, so the app must be known."""

from __future__ import annotations

import asyncio
import sys
from datetime import datetime
from typing import Annotated, Any, Final

import typer
from rich.text import Text

from perdure.app.by_name import typed_arguments
from perdure.domain.jobs.job import Intake, JobView
from perdure.enqueue.handle import Handle
from perdure.errors import ArgumentError
from perdure.surfaces.cli import options
from perdure.surfaces.cli.completion import complete_kind, complete_queue
from perdure.surfaces.cli.loading import load_app
from perdure.surfaces.cli.project import project
from perdure.surfaces.cli.session import SOURCE, actor
from perdure.surfaces.cli.terminal.hostile import one_line
from perdure.surfaces.cli.terminal.output import console, print_json, say
from perdure.surfaces.cli.terminal.reading import read_json
from perdure.surfaces.cli.terminal.times import both, read_time
from perdure.surfaces.cli.workers.banner import doubts_about_database

_WHEN: Final = "When"
_HOW: Final = "How"

KindName = Annotated[
    str,
    typer.Argument(metavar="KIND", help="A kind of job.", show_default=False, autocompletion=complete_kind),
]
Args = Annotated[str, typer.Option("--args", metavar="JSON", help="Arguments by name, as '{\"n\": 1}'.")]
AppName = Annotated[
    str | None,
    typer.Option("--app", metavar="APP", envvar="PERDURE_APP", help="module:app: it checks the arguments."),
]
QueueName = Annotated[
    str | None,
    typer.Option("--queue", help="Another queue.", rich_help_panel=_HOW, autocompletion=complete_queue),
]
Priority = Annotated[
    int | None, typer.Option("--priority", help="Another priority, 0 (first) to 9 (last).", rich_help_panel=_HOW)
]
OwnId = Annotated[
    str | None,
    typer.Option("--id", metavar="UUID", help="Your own id; the same id returns the same job.", rich_help_panel=_HOW),
]
Ref = Annotated[
    str | None,
    typer.Option("--ref", help="An external name of the job; unique among all jobs.", rich_help_panel=_HOW),
]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="A tag; repeatable.", rich_help_panel=_HOW)]
Meta = Annotated[
    str | None, typer.Option("--meta", metavar="JSON", help="A JSON object for ctx.meta.", rich_help_panel=_HOW)
]
Delay = Annotated[
    str | None, typer.Option("--delay", metavar="SPAN", help="This long from now: 90s, 2h, 7d.", rich_help_panel=_WHEN)
]
At = Annotated[
    str | None,
    typer.Option("--at", metavar="TIME", help="At this time, as 2026-03-01T09:00Z or +2h.", rich_help_panel=_WHEN),
]


def enqueue(
    kind: KindName,
    *,
    args: Args = "{}",
    app: AppName = None,
    queue: QueueName = None,
    priority: Priority = None,
    delay: Delay = None,
    at: At = None,
    job_id: OwnId = None,
    ref: Ref = None,
    tag: Tags = None,
    meta: Meta = None,
    why: options.Why = None,
    as_json: options.Json = False,
) -> None:
    """Enqueue a job, in the app's own database.

    The app's code checks the arguments, so the app must be known.
    """
    if app is None and project().app is None:
        raise ArgumentError(
            "--app",
            "is needed: only the app's code can check the arguments; give --app module:app, PERDURE_APP, or app in"
            " [tool.perdure]",
        )
    given = _object("--args", args)
    moment = None if at is None else read_time("--at", at)
    loaded = load_app(app)
    if not as_json:
        for doubt, facts in doubts_about_database(loaded):
            details = "  ".join(f"{name}={one_line(value, 500)}" for name, value in facts.items())
            console(sys.stderr).print(Text(f"note: {doubt}  {details}", style="yellow"), soft_wrap=True)
    job = loaded.job_named(kind)
    known = typed_arguments(loaded, kind, given)
    metadata = _object("--meta", meta) if meta is not None else None

    async def act() -> tuple[Handle[Any], JobView, datetime]:
        async with loaded:
            now = await (await loaded.store()).now()
            prepared = job.using(
                queue=queue,
                priority=priority,
                delay=delay,
                run_at=None if moment is None else moment.when(now),
                id=job_id,
                ref=ref,
                tags=tuple(tag or ()),
                meta=metadata,
            )
            desk = await loaded.desk(actor(), SOURCE)
            receipt = await desk.enqueue(prepared.call(**known).job, why=why)
            handle: Handle[Any] = Handle(loaded, loaded.kinds[kind], receipt)
            return handle, await handle.view(), now

    handle, view, now = asyncio.run(act())
    if as_json:
        print_json({"id": handle.id, "intake": handle.intake, "job": view.to_dict()})
        return
    words = {Intake.NEW: "enqueued", Intake.EXISTING: "is there already", Intake.REPLACED: "replaced"}
    due = f", due {both(view.due_at, now)}" if view.due_at is not None else ""
    say(f"{one_line(kind)} {words[handle.intake]} in {one_line(view.queue)}{due}:", "bold")
    say(f"  {handle.id}")


def _object(option: str, text: str) -> dict[str, Any]:
    value = read_json(option, text)
    if not isinstance(value, dict):
        raise ArgumentError(option, f'must be a JSON object, as {{"n": 1}}, got {text[:100]!r}')
    return value
