"""`perdure token`: access to the desk and the API from other machines."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from perdure.domain.operate.access import TokenView
from perdure.operate.desk import Desk
from perdure.surfaces.cli import options
from perdure.surfaces.cli.completion import complete_token
from perdure.surfaces.cli.session import with_desk
from perdure.surfaces.cli.terminal.hostile import one_line
from perdure.surfaces.cli.terminal.output import console, plain, print_json, say
from perdure.surfaces.cli.terminal.pieces import cell, columns
from perdure.surfaces.cli.terminal.times import both, relative

token = typer.Typer(help="Create, list and revoke access tokens of the desk and the API.", no_args_is_help=True)

Name = Annotated[str, typer.Option("--name", help="The owner; the audit trail shows this name as the actor.")]
ScopeWord = Annotated[str, typer.Option("--scope", metavar="SCOPE", help="read, operate or admin.")]
Expires = Annotated[
    str | None, typer.Option("--expires", metavar="SPAN", help="Expires after, as 90d or 12h; default: never.")
]
Which = Annotated[
    str, typer.Argument(metavar="NAME", help="Its name or id.", show_default=False, autocompletion=complete_token)
]


@token.command("create")
def create(
    *,
    name: Name,
    scope: ScopeWord,
    expires: Expires = None,
    url: options.Url = None,
    why: options.Why = None,
    as_json: options.Json = False,
) -> None:
    """Create a token and show its secret, once."""

    async def act(desk: Desk) -> tuple[TokenView, str, datetime]:
        return *await desk.create_token(name, scope, expires=expires, why=why), await desk.now()

    made, secret, now = with_desk(url, act)
    if as_json:
        print_json({"token": plain(made), "secret": secret})
        return
    end = "does not expire" if made.expires_at is None else f"expires {both(made.expires_at, now)}"
    say(f"Token {one_line(made.name)} with scope {made.scope} created; it {end}.", "bold")
    say("Keep the secret now: it is not stored and cannot be shown again.", "yellow")
    say(secret)


@token.command("list")
def list_tokens(url: options.Url = None, as_json: options.Json = False) -> None:
    """List all tokens, oldest first, also revoked and expired ones."""

    async def look(desk: Desk) -> tuple[list[TokenView], datetime]:
        return await desk.tokens(), await desk.now()

    found, now = with_desk(url, look)
    if as_json:
        print_json({"tokens": [plain(one) for one in found]})
    elif found:
        console().print(_table(found, now))
    else:
        say("No tokens.", "dim")


@token.command("revoke")
def revoke(which: Which, url: options.Url = None, why: options.Why = None, as_json: options.Json = False) -> None:
    """Revoke a token; sessions that were opened with it end at once."""
    gone = with_desk(url, lambda desk: desk.revoke_token(which, why=why))
    if as_json:
        print_json({"action": "revoked", "token": plain(gone)})
    else:
        say(f"Token {one_line(gone.name)} ({gone.id}) revoked.", "bold")


def _table(found: Sequence[TokenView], now: datetime) -> Table:
    table = columns("ID", "Name", "Scope", "State", "Created", "Last used", "By", giving_way={"Name", "By"})
    for one in found:
        table.add_row(
            Text(one.id),
            cell(one.name),
            Text(one.scope),
            _state(one, now),
            Text(relative(one.created_at, now)),
            Text("never" if one.last_used_at is None else relative(one.last_used_at, now)),
            cell(one.created_by, "dim"),
        )
    return table


def _state(one: TokenView, now: datetime) -> Text:
    if one.revoked_at is not None:
        return Text("revoked", style="dim")
    if one.expires_at is None:
        return Text("valid", style="green")
    return Text(f"expires {relative(one.expires_at, now)}") if one.is_live(now) else Text("expired", style="dim")
