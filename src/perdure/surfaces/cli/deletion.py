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
    `foretell`: for a dry run, what else would go with it, from what `look` has found.
    """

    name: str
    question: str
    look: Callable[[Desk], Awaitable[object]]
    delete: Callable[[Desk], Awaitable[object]]
    document: Mapping[str, str]
    foretell: Callable[[Desk], Awaitable[Mapping[str, str]]] | None = None

    def carry_out(self, url: str | None, *, yes: bool, as_json: bool, dry_run: bool = False) -> NoReturn:
        """Ask unless it is already confirmed, delete, report, and exit. A dry run only looks and reports."""
        if dry_run:
            self._show(with_desk(url, self._with_it), as_json=as_json)
            raise typer.Exit(Exit.OK)
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
            print_json({"action": "deleted", "dry_run": False, **self.document})
        else:
            say(f"{self.name} deleted." if done else "Nothing was deleted.", "bold" if done else "yellow")
        raise typer.Exit(Exit.OK if done else Exit.CONFLICT)

    async def _with_it(self, desk: Desk) -> Mapping[str, str]:
        await self.look(desk)
        return {} if self.foretell is None else await self.foretell(desk)

    def _show(self, more: Mapping[str, str], *, as_json: bool) -> None:
        if as_json:
            print_json({"action": "deleted", "dry_run": True, **self.document, **more})
            return
        say(f"{self.name} would be deleted:" if more else f"{self.name} would be deleted.", "bold")
        for what, value in more.items():
            say(f"  {what.replace('_', ' ')}  {value}")
