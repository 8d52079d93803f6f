"""`perdure breakers` and `perdure spent`: circuit breakers, and spending under budgets."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Final

import typer
from rich.table import Table
from rich.text import Text

from perdure.domain.gate import BreakerState, BreakerView
from perdure.errors import ArgumentError
from perdure.operate.commands.holds import Spent
from perdure.operate.desk import Desk
from perdure.operate.wording import some
from perdure.surfaces.cli import options
from perdure.surfaces.cli.completion import complete_breaker, complete_budget
from perdure.surfaces.cli.session import with_desk
from perdure.surfaces.cli.terminal.hostile import one_line
from perdure.surfaces.cli.terminal.output import console, plain, print_json, say
from perdure.surfaces.cli.terminal.pieces import cell, columns, facts
from perdure.surfaces.cli.terminal.times import both, relative

breakers = typer.Typer(help="List circuit breakers; open or close one by hand.")

_STYLE: Final = {BreakerState.CLOSED: "green", BreakerState.OPEN: "bold red", BreakerState.HALF_OPEN: "yellow"}

Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="The breaker's name.", show_default=False, autocompletion=complete_breaker),
]
For = Annotated[
    str | None, typer.Option("--for", metavar="SPAN", help="How long; then trial jobs run. Default: until closed.")
]
BudgetName = Annotated[
    str | None,
    typer.Argument(
        metavar="NAME", help="The budget's name; all without it.", show_default=False, autocompletion=complete_budget
    ),
]


@breakers.callback(invoke_without_command=True)
def list_breakers(context: typer.Context, url: options.Url = None, as_json: options.Json = False) -> None:
    """List circuit breakers by name; open or close one by hand."""
    if context.invoked_subcommand is not None:
        for option, name in (("--url", "url"), ("--json", "as_json")):
            source = context.get_parameter_source(name)
            if source is not None and source.name == "COMMANDLINE":
                raise ArgumentError(option, f"must come after {context.invoked_subcommand}")
        return
    show_breakers(url, as_json=as_json)


@breakers.command("list")
def show_breakers(url: options.Url = None, *, as_json: options.Json = False) -> None:
    """List circuit breakers by name; the default command."""

    async def look(desk: Desk) -> tuple[list[BreakerView], datetime]:
        return await desk.holds.breakers(), await desk.now()

    found, now = with_desk(url, look)
    if as_json:
        print_json({"breakers": plain(found)})
    elif found:
        console().print(_table(found, now))
    else:
        say("No job has reached a breaker yet.", "dim")


@breakers.command("open")
def open_breaker(
    name: Name,
    *,
    for_: For = None,
    why: options.Why = None,
    url: options.Url = None,
    as_json: options.Json = False,
) -> None:
    """Hold all jobs behind a breaker.

    The name is not checked: only the app's code knows its breakers.
    """

    async def act(desk: Desk) -> tuple[BreakerView, bool, datetime]:
        known = any(view.name == name for view in await desk.holds.breakers())
        return await desk.holds.open_breaker(name, for_=for_, why=why), known, await desk.now()

    view, known, now = with_desk(url, act)
    if as_json:
        print_json({"action": "opened", "known": known, "breaker": plain(view)})
        return
    end = "until it is closed by hand" if view.until is None else f"until {both(view.until, now)}"
    say(f"{one_line(name)} opened, {end}.", "bold")
    if not known:
        say("No job has failed behind a breaker of this name yet: check that it is spelt as in the code.", "yellow")


@breakers.command("close")
def close_breaker(
    name: Name, *, why: options.Why = None, url: options.Url = None, as_json: options.Json = False
) -> None:
    """Let the jobs behind a breaker through again, slowly at first."""

    async def act(desk: Desk) -> BreakerView:
        return await desk.holds.close_breaker(name, why=why)

    view = with_desk(url, act)
    if as_json:
        print_json({"action": "closed", "breaker": plain(view)})
    else:
        say(f"{one_line(name)} closed.", "bold")


def spent(name: BudgetName = None, url: options.Url = None, as_json: options.Json = False) -> None:
    """Show the spending of one budget or all, including estimates of running jobs."""
    if name is None:
        _list_budgets(with_desk(url, lambda desk: desk.holds.budgets()), as_json=as_json)
        return
    found = with_desk(url, lambda desk: desk.holds.spent(name))
    if as_json:
        print_json(plain(found))
        return
    say(one_line(name), "bold")
    sums = (("24 hours", found.daily), ("7 days", found.weekly), ("30 days", found.monthly))
    console().print(facts((window, Text(f"{amount:,.2f}")) for window, amount in sums))


def _list_budgets(found: Sequence[Spent], *, as_json: bool) -> None:
    if as_json:
        print_json({"budgets": plain(found)})
    elif found:
        table = columns("Budget", "24 hours", "7 days", "30 days", giving_way={"Budget"})
        for each in found:
            sums = (each.daily, each.weekly, each.monthly)
            table.add_row(cell(each.name), *(Text(f"{amount:,.2f}", justify="right") for amount in sums))
        console().print(table)
    else:
        say("No budget has spent anything yet.", "dim")


def _table(found: Sequence[BreakerView], now: datetime) -> Table:
    table = columns("Name", "State", "Since", "Until", "Why", giving_way={"Name", "Why"})
    for view in found:
        until = "closed by hand" if view.by_hand else relative(view.until, now) if view.until else ""
        table.add_row(
            cell(view.name),
            Text(view.state, style=_STYLE[view.state]),
            Text("" if view.changed_at is None else relative(view.changed_at, now)),
            Text(until),
            cell(_reason(view), "dim"),
        )
    return table


def _reason(view: BreakerView) -> str:
    if view.by is not None:
        return f"{view.by}: {view.note}" if view.note else f"by {view.by}"
    if view.note:
        return view.note
    return f"{some(len(view.failures), 'failure')} lately" if view.failures else ""
