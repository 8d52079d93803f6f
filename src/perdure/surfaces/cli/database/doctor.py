"""`perdure doctor`: check the whole system."""

from __future__ import annotations

from typing import Annotated, Final

import typer
from rich.table import Table
from rich.text import Text

from perdure.clock import SystemClock
from perdure.domain.duration import parse_duration
from perdure.domain.operate.audit import By
from perdure.errors import StoreError
from perdure.operate.audit_trail import checked_why
from perdure.operate.health.checkup import Checkup
from perdure.operate.health.checkup import repair as mend
from perdure.storage.operate.diagnosis import Finding, Severity, fine, problem
from perdure.storage.port import Store
from perdure.surfaces.cli import options
from perdure.surfaces.cli.exits import Exit
from perdure.surfaces.cli.session import SOURCE, actor, shown_url, with_store
from perdure.surfaces.cli.terminal.hostile import one_line
from perdure.surfaces.cli.terminal.output import console, plain, print_json, say

_MARKS: Final = {
    Severity.OK: ("ok", "green"),
    Severity.WARNING: ("warn", "yellow"),
    Severity.PROBLEM: ("BAD", "bold red"),
}
Lease = Annotated[str, typer.Option("--lease", metavar="SPAN", help="The lease that your workers use.")]

Repair = Annotated[
    bool, typer.Option("--repair", help="First correct the waits of jobs that were parked while the clock was ahead.")
]


def doctor(
    url: options.Url = None,
    lease: Lease = "30s",
    repair: Repair = False,
    why: options.Why = None,
    as_json: options.Json = False,
) -> None:
    """Check the database, workers and queues, and suggest fixes.

    Changes nothing, unless `--repair` is given. Exits with 5 if there is a problem; warnings alone exit with 0.
    """
    silent_after = parse_duration("--lease", lease)

    async def examine(store: Store) -> list[Finding]:
        mended: list[Finding] = []
        if repair:
            count = await mend(store, By(actor(), checked_why(why), SOURCE))
            mended.append(fine("repair", f"jobs that wait as they should again: {count}"))
        return mended + await Checkup(store, SystemClock(), silent_after).examine()

    try:
        findings = [fine("database", f"reachable: {shown_url(url)}"), *with_store(url, examine)]
    except StoreError as error:
        findings = [problem("database", str(error), "fix this first: nothing else can be checked")]
    sick = any(finding.severity is Severity.PROBLEM for finding in findings)
    if as_json:
        print_json({"healthy": not sick, "findings": plain(findings)})
    else:
        _show(findings)
    if sick:
        raise typer.Exit(Exit.UNHEALTHY)


def _show(findings: list[Finding]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        word, style = _MARKS[finding.severity]
        seen = Text(one_line(finding.seen))
        if finding.advice:
            seen.append(f"\n→ {one_line(finding.advice)}", style="dim")
        table.add_row(Text(word, style=style), Text(finding.check, style="bold"), seen)
    console().print(table)
    bad = sum(finding.severity is Severity.PROBLEM for finding in findings)
    warned = sum(finding.severity is Severity.WARNING for finding in findings)
    if bad or warned:
        say(f"\n{bad} problem{'' if bad == 1 else 's'}, {warned} warning{'' if warned == 1 else 's'}.")
    else:
        say("\nAll is well.", "green")
