"""`perdure migrate`: update the schema, or only check it."""

from __future__ import annotations

from typing import Annotated

import typer

from perdure.errors import SchemaError
from perdure.storage.port import Store
from perdure.surfaces.cli import options
from perdure.surfaces.cli.exits import Exit
from perdure.surfaces.cli.session import shown_url, with_store
from perdure.surfaces.cli.terminal.output import print_json, say

Check = Annotated[bool, typer.Option("--check", help="Change nothing; exit 1 unless the schema is current.")]


def migrate(url: options.Url = None, check: Check = False, as_json: options.Json = False) -> None:
    """Update the schema of the database.

    Lists the applied migrations. Safe to run at any time, and from several places at once.
    """
    if check:
        _check(url, as_json=as_json)
        return

    async def apply(store: Store) -> list[str]:
        return await store.migrate()

    applied = with_store(url, apply, create=True)
    if as_json:
        print_json({"current": True, "applied": applied})
    elif applied:
        say(f"Applied to {shown_url(url)}:")
        for name in applied:
            say(f"  {name}", "green")
    else:
        say("The schema is current; nothing to do.")


def _check(url: str | None, *, as_json: bool) -> None:
    async def look(store: Store) -> str | None:
        try:
            await store.check_schema()
        except SchemaError as error:
            return str(error)
        return None

    wrong = with_store(url, look)
    if as_json:
        print_json({"current": wrong is None, "problem": wrong})
    else:
        say(f"Not current: {wrong}" if wrong else "The schema is current.", "yellow" if wrong else "")
    if wrong:
        raise typer.Exit(Exit.FAILED)
