"""`perdure approve` and `perdure approvals`: answer the questions of jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer
from rich.text import Text

from perdure.domain.flows.approval import Approval
from perdure.domain.jobs.ids import JobId
from perdure.operate.desk import Desk
from perdure.operate.records import Asking
from perdure.storage.records import JobFilter
from perdure.surfaces.cli import options
from perdure.surfaces.cli.completion import complete_asking, complete_question
from perdure.surfaces.cli.exits import Exit
from perdure.surfaces.cli.jobs.display.job_table import job_document
from perdure.surfaces.cli.session import with_desk
from perdure.surfaces.cli.terminal.asking import agreed, require_terminal
from perdure.surfaces.cli.terminal.hostile import one_line
from perdure.surfaces.cli.terminal.output import console, plain, print_json, say
from perdure.surfaces.cli.terminal.pieces import cell, columns
from perdure.surfaces.cli.terminal.times import relative

AskingJob = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="The id of the job, or its ref.", show_default=False, autocompletion=complete_asking
    ),
]
Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="The name of the question, as in `approvals`.",
        show_default=False,
        autocompletion=complete_question,
    ),
]
Deny = Annotated[bool, typer.Option("--deny", help="Say no.")]
Note = Annotated[str | None, typer.Option("--note", metavar="TEXT", help="A note for the job.")]
Ahead = Annotated[bool, typer.Option("--ahead", help="Answer even if the job has not asked yet.")]


def approve(
    job_id: AskingJob,
    name: Name,
    *,
    deny: Deny = False,
    note: Note = None,
    ahead: Ahead = False,
    url: options.Url = None,
    why: options.Why = None,
    yes: options.Yes = False,
    as_json: options.Json = False,
) -> None:
    """Answer a job that waits for an approval.

    It asks first, because the first answer is final.
    """
    if not yes:
        require_terminal(as_json=as_json)

    async def act(desk: Desk) -> tuple[JobId, Approval | None]:
        job = (await desk.job(job_id, lines=0)).job
        if not yes:
            verdict = "refused" if deny else "approved"
            if not agreed(f"{one_line(name)} of job {job.id} ({one_line(job.kind)}) will be {verdict} for good"):
                return job.id, None
        return job.id, await desk.answer(job.id, name, approved=not deny, note=note, why=why, ahead=ahead)

    known, given = with_desk(url, act)
    if given is None:
        say("No answer was given.", "yellow")
        raise typer.Exit(Exit.CONFLICT)
    if as_json:
        print_json({"job": known, "name": name, **plain(given)})
    else:
        say(f"{one_line(name)} of job {known} {'approved' if given.approved else 'refused'}.", "bold")


def approvals(
    *,
    kind: options.KindName = None,
    queue: options.QueueName = None,
    url: options.Url = None,
    as_json: options.Json = False,
) -> None:
    """List jobs that wait for an approval, newest first."""

    async def look(desk: Desk) -> tuple[list[Asking], datetime]:
        return await desk.approvals(JobFilter(kind=kind, queue=queue)), await desk.now()

    found, now = with_desk(url, look)
    if as_json:
        print_json({"approvals": [{**plain(asking), "job": job_document(asking.job)} for asking in found]})
        return
    if not found:
        say("No job waits for an answer.", "dim")
        return
    table = columns("Job", "Asks", "Kind", "Made", "Gives up", giving_way={"Asks", "Kind"})
    for asking in found:
        job = asking.job
        gives_up = "never" if asking.until is None else relative(asking.until, now)
        made = Text(relative(job.created_at, now))
        table.add_row(Text(job.id), cell(asking.name, "bold"), cell(job.kind), made, Text(gives_up))
    console().print(table)
    say("Answer: perdure approve JOB NAME [--deny]", "dim")
