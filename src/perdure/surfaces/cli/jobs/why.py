"""`perdure jobs why`: why a job is not running, in one answer."""

from __future__ import annotations

from datetime import datetime

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from perdure.operate.desk import Desk
from perdure.operate.records import Why
from perdure.surfaces.cli import options
from perdure.surfaces.cli.jobs.display.job_table import job_document, word_of
from perdure.surfaces.cli.session import with_desk
from perdure.surfaces.cli.terminal.hostile import one_line
from perdure.surfaces.cli.terminal.output import STATE_STYLE, console, plain, print_json
from perdure.surfaces.cli.terminal.times import both


def why(job_id: options.JobId, url: options.Url = None, as_json: options.Json = False) -> None:
    """Show why a job is not running, until when, and what to do about it."""

    async def look(desk: Desk) -> tuple[Why, datetime]:
        return await desk.why(job_id), await desk.now()

    found, now = with_desk(url, look)
    if as_json:
        print_json({**plain(found), "job": job_document(found.job)})
    else:
        _show(found, now)


def _show(found: Why, now: datetime) -> None:
    job, out = found.job, console()
    state = (job.state.upper(), STATE_STYLE.get(job.state, ""))
    ref = f"  {one_line(job.ref)}" if job.ref is not None else ""
    head = Text.assemble((one_line(job.kind), "bold"), "  ", state, word_of(job), f"  {job.id}{ref}")
    facts = [Text(one_line(fact)) for fact in found.facts]
    if found.until is not None:
        facts.append(Text(f"Until {both(found.until, now)}", style="yellow"))
    for line in (head, Text(one_line(found.answer), style="bold")):
        _line(out, line)
    for fact in facts:
        _line(out, fact, indent=2)
    if found.what_to_do:
        _line(out, Text.assemble(("What to do: ", "dim"), one_line(found.what_to_do)))


def _line(out: Console, text: Text, *, indent: int = 0) -> None:
    """Indent a long line on a terminal; in a file it stays one line."""
    if out.is_terminal:
        out.print(Padding(text, (0, 0, 0, indent)))
    else:
        out.print(Text(" " * indent) + text, soft_wrap=True)
