"""`perdure alerts channels`: where notices go."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Annotated

import typer

from perdure.domain.alerts.channel import ChannelView
from perdure.operate.desk import Desk
from perdure.surfaces.cli import options
from perdure.surfaces.cli.alerts.alert_tables import channel_table
from perdure.surfaces.cli.completion import complete_channel
from perdure.surfaces.cli.deletion import Deletion
from perdure.surfaces.cli.session import with_desk
from perdure.surfaces.cli.terminal.hostile import one_line
from perdure.surfaces.cli.terminal.output import console, plain, print_json, say

channels = typer.Typer(help="List, add and delete the channels of alerts.", no_args_is_help=True)

Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="The channel's name.", show_default=False, autocompletion=complete_channel),
]
Address = Annotated[
    str,
    typer.Option(
        "--address",
        metavar="ADDRESS",
        help="env:NAME of a variable that the workers have; or the address itself, stored encrypted; - reads it.",
    ),
]
Secret = Annotated[
    str | None, typer.Option("--secret", metavar="SECRET", help="Signs webhooks: env:NAME, or the secret itself.")
]
AllowPrivate = Annotated[
    bool, typer.Option("--allow-private", help="A webhook or a service may lead to an address that is not public.")
]


@channels.command("list")
def list_channels(url: options.Url = None, as_json: options.Json = False) -> None:
    """List channels by name, without their secrets."""

    async def look(desk: Desk) -> tuple[list[ChannelView], datetime]:
        return await desk.alerts.channels(), await desk.now()

    found, now = with_desk(url, look)
    if as_json:
        print_json({"channels": plain(found)})
    elif found:
        console().print(channel_table(found, now))
    else:
        say("No channels: add one with `perdure alerts channels add`.", "dim")


@channels.command("add")
def add_channel(
    name: Name,
    *,
    address: Address,
    secret: Secret = None,
    allow_private: AllowPrivate = False,
    why: options.Why = None,
    url: options.Url = None,
    as_json: options.Json = False,
) -> None:
    """Add a channel, or replace one made at run time."""
    given = sys.stdin.readline().strip() if address == "-" else address

    async def act(desk: Desk) -> ChannelView:
        return await desk.alerts.save_channel(name, given, secret=secret, allow_private=allow_private, why=why)

    view = with_desk(url, act)
    if as_json:
        print_json({"action": "saved", "channel": plain(view)})
        return
    say(f"Channel {one_line(name)} saved: {one_line(view.address)}", "bold")
    say(f"Try it: perdure alerts test {one_line(name)}", "dim")


@channels.command("delete")
def delete_channel(
    name: Name,
    *,
    why: options.Why = None,
    yes: options.Yes = False,
    url: options.Url = None,
    as_json: options.Json = False,
) -> None:
    """Delete a channel that no rule uses, with its address."""
    Deletion(
        name=f"Channel {one_line(name)}",
        question=f"Channel {one_line(name)} and its address will be deleted",
        look=lambda desk: desk.alerts.channel(name),
        delete=lambda desk: desk.alerts.delete_channel(name, why=why),
        document={"channel": name},
    ).carry_out(url, yes=yes, as_json=as_json)
