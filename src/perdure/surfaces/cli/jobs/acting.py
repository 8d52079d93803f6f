"""A command on jobs: confirm it, run it, and report what it did."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import typer
from msgspec import Struct
from msgspec.structs import asdict
from rich.text import Text

from perdure.operate.commands.actions import Action
from perdure.operate.desk import Desk
from perdure.operate.desk_base import JOBS_PER_COMMAND_LIMIT
from perdure.operate.records import Changed
from perdure.surfaces.cli.bulk.orders import BulkOrder
from perdure.surfaces.cli.exits import Exit
from perdure.surfaces.cli.jobs.filters import Chosen, check_chosen
from perdure.surfaces.cli.session import with_desk
from perdure.surfaces.cli.terminal.asking import agreed, require_terminal, some
from perdure.surfaces.cli.terminal.output import console, plain, print_json, say

_JOBS_LISTED: Final = 20


class Order(Struct, frozen=True, kw_only=True):
    """The operator's command, and whether it is confirmed."""

    action: Action
    as_json: bool
    yes: bool
    dry_run: bool
    detach: bool = False
    limit: int | None = None
    mark: str | None = None
    run_at: datetime | timedelta | None = None
    why: str | None = None

    def carry_out(self, url: str | None, chosen: Chosen) -> None:
        """Run the command, report the outcome, and exit with its code. On a filter it is a bulk command."""
        check_chosen(chosen)
        if not chosen.ids:
            BulkOrder(**asdict(self)).carry_out(url, chosen)
        must_ask = not (self.yes or self.dry_run) and self.action.for_good
        if must_ask:
            require_terminal(as_json=self.as_json, hint="; --dry-run shows what would happen")

        async def at(desk: Desk) -> tuple[Changed, bool]:
            which = await chosen.which(desk)
            if self.dry_run:
                return await desk.preview(self.action, which, limit=JOBS_PER_COMMAND_LIMIT), True
            if must_ask:
                foreseen = await desk.preview(self.action, which, limit=JOBS_PER_COMMAND_LIMIT)
                if not foreseen.ids or not self._agreed(foreseen):
                    return Changed(not_found=foreseen.not_found, unchanged=foreseen.unchanged), not foreseen.ids
            return await desk.act(self.action, which, limit=JOBS_PER_COMMAND_LIMIT, why=self.why), True

        changed, was_agreed = with_desk(url, at)
        self._report(changed)
        raise typer.Exit(_code(changed) if was_agreed else Exit.CONFLICT)

    def _agreed(self, foreseen: Changed) -> bool:
        count = len(foreseen.ids)
        history = f" and {'its' if count == 1 else 'their'} history" if self.action.for_good else ""
        return agreed(f"{some(count, 'job')}{history} will be {self.action.verb}{' for good' if history else ''}")

    def _report(self, changed: Changed) -> None:
        if self.as_json:
            print_json({"action": self.action.verb, "dry_run": self.dry_run, **plain(changed)})
            return
        say(_summary(self.action.verb, changed, dry_run=self.dry_run), "bold" if changed.ids else "yellow")
        out = console()
        for job_id in changed.ids[:_JOBS_LISTED]:
            out.print(Text(f"  {job_id}{'  asked to stop' if job_id in changed.asked else ''}"), soft_wrap=True)
        if len(changed.ids) > _JOBS_LISTED:
            say(f"  … and {len(changed.ids) - _JOBS_LISTED:,} more", "dim")
        for missing in changed.not_found:
            say(f"  {missing}  not found", "yellow")
        for left in changed.unchanged:
            say(f"  {left.id}  unchanged: {left.why}", "yellow")


def _summary(verb: str, changed: Changed, *, dry_run: bool) -> str:
    count = len(changed.ids)
    if not count:
        return f"Nothing {'would be' if dry_run else 'was'} {verb}."
    done = count - len(changed.asked)
    jobs = some(count, "job")
    if dry_run:
        return f"{jobs} would be {verb}:"
    if not done:
        return f"{jobs} asked to stop:"
    asked = f", {len(changed.asked):,} of them asked to stop" if changed.asked else ""
    return f"{jobs} {verb}{asked}:"


def _code(changed: Changed) -> Exit:
    """A filter that no job matches is not an error: there was nothing to do. A named job that was skipped is one."""
    if changed.not_found:
        return Exit.NOT_FOUND
    return Exit.CONFLICT if changed.unchanged else Exit.OK
