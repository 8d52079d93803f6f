"""`perdure attention`: what needs a person."""

from __future__ import annotations

from rich.text import Text

from perdure.operate.attention.need import Need
from perdure.operate.desk import Desk
from perdure.operate.wording import utc_text
from perdure.storage.operate.diagnosis import Severity
from perdure.surfaces.cli import options
from perdure.surfaces.cli.session import with_desk
from perdure.surfaces.cli.terminal.hostile import one_line
from perdure.surfaces.cli.terminal.output import console, plain, print_json, say


def attention(url: options.Url = None, as_json: options.Json = False) -> None:
    """List what needs a person, the worst first.

    The first page of the desk shows the same: dead letters, queues without workers, late schedules and the like.
    """

    async def look(desk: Desk) -> list[Need]:
        return await desk.attention(database=True)

    needs = with_desk(url, look)
    if as_json:
        print_json({"needs": plain(needs)})
    elif needs:
        for need in needs:
            _print(need)
    else:
        say("✿ All is well: nothing needs a person.", "green")


def _print(need: Need) -> None:
    style = "bold red" if need.severity is Severity.PROBLEM else "yellow"
    out = console()
    sentence = f" {one_line(need.what)}{f' {one_line(need.quote, 200)}' if need.quote else ''}"
    out.print(Text.assemble(("● ", style), (one_line(need.subject), "bold"), sentence))
    since = f"since {utc_text(need.since)}" if need.since else ""
    for line in ("; ".join(part for part in (since, need.detail) if part), need.cli):
        if line:
            out.print(Text(f"  {one_line(line)}", style="dim"))
