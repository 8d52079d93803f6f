"""Deletion by name: look the thing up, ask the operator, then delete it permanently."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import NoReturn

import typer
from msgspec import Struct

from perdure.operate.desk import Desk
from perdure.surfaces.cli.exits import Exit
from perdure.surfaces.cli.session import with_desk
from perdure.surfaces.cli.terminal.asking import agreed, require_terminal
from perdure.surfaces.cli.terminal.output import print_json, say


class Deletion(Struct, frozen=True, kw_only=True):
    """What to delete, in sanitized words, and how.

    `look` raises NotFoundError for a thing that does not exist, before the question. `document` names it in JSON.
    """

    name: str
    question: str
    look: Callable[[Desk], Awaitable[object]]
    delete: Callable[[Desk], Awaitable[object]]
    document: Mapping[str, str]

    def carry_out(self, url: str | None, *, yes: bool, as_json: bool) -> NoReturn:
        """Ask unless it is already confirmed, delete, report, and exit."""
        if not yes:
            require_terminal(as_json=as_json)

        async def act(desk: Desk) -> bool:
            await self.look(desk)
            if not yes and not agreed(self.question):
                return False
            await self.delete(desk)
            return True

        done = with_desk(url, act)
        if as_json:
            print_json({"action": "deleted", **self.document})
        else:
            say(f"{self.name} deleted." if done else "Nothing was deleted.", "bold" if done else "yellow")
        raise typer.Exit(Exit.OK if done else Exit.CONFLICT)
