"""A command on a filter: counted, confirmed, started as a bulk command, and run here unless it is detached."""

from __future__ import annotations

import asyncio
import sys
from datetime import datetime, timedelta

import typer
from msgspec import Struct
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from perdure.operate.bulk.records import BulkPlan
from perdure.operate.commands.actions import Action
from perdure.operate.desk import Desk
from perdure.storage.operate.bulk import BulkState, BulkView
from perdure.surfaces.cli.bulk.bulk_page import say_skipped
from perdure.surfaces.cli.exits import Exit
from perdure.surfaces.cli.jobs.filters import Chosen
from perdure.surfaces.cli.session import with_desk
from perdure.surfaces.cli.terminal.asking import agreed, require_terminal, some
from perdure.surfaces.cli.terminal.hostile import one_line
from perdure.surfaces.cli.terminal.output import complain, console, plain, print_json, say


class BulkOrder(Struct, frozen=True, kw_only=True):
    """The operator's command on all jobs that match, and whether it is confirmed."""

    action: Action
    as_json: bool
    yes: bool
    dry_run: bool
    detach: bool
    limit: int | None = None
    mark: str | None = None
    run_at: datetime | timedelta | None = None
    why: str | None = None

    def carry_out(self, url: str | None, chosen: Chosen) -> None:
        """Execute the command, print the result, and exit with its code."""
        must_ask = not (self.yes or self.dry_run)
        if must_ask:
            require_terminal(as_json=self.as_json, hint="; --dry-run shows what would happen")

        async def at(desk: Desk) -> tuple[BulkPlan, BulkView | None, bool]:
            which = await chosen.filter(desk)
            plan = await desk.plan(self.action.name, which, mark=self.mark, run_at=self.run_at, limit=self.limit)
            if self.dry_run or not plan.jobs:
                return plan, None, True
            if must_ask and not self._agreed(plan):
                return plan, None, False
            view = await desk.start_bulk(plan, why=self.why)
            return plan, view if self.detach else await self._work(desk, view), True

        plan, view, was_agreed = with_desk(url, at)
        self._report(plan, view)
        raise typer.Exit(_code(view) if was_agreed else Exit.CONFLICT)

    def _agreed(self, plan: BulkPlan) -> bool:
        for note in plan.notes:
            say(f"  {one_line(note, 500)}", "dim")
        history = f" and {'its' if plan.jobs == 1 else 'their'} history" if self.action.for_good else ""
        count = f"{'At least ' if plan.capped else ''}{some(plan.jobs, 'job')}"
        return agreed(f"{count}{history} will be {self.action.verb}{' for good' if history else ''}")

    async def _work(self, desk: Desk, view: BulkView) -> BulkView:
        """Run it here; on a terminal with a progress bar."""
        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console(sys.stderr),
            transient=True,
            disable=self.as_json or not sys.stderr.isatty(),
        )
        try:
            with bar:
                task = bar.add_task(self.action.verb, total=view.jobs)
                async for latest in desk.work_on_bulk(view.id):
                    view = latest
                    bar.update(task, completed=view.seen, total=max(view.jobs, view.seen))
        except asyncio.CancelledError:  # Ctrl-C
            how_far = f"interrupted after {view.seen:,} of {some(view.jobs, 'job')}; workers do the rest"
            complain(how_far, as_json=self.as_json, hint=f"To stop it: perdure bulk stop {view.id}")
            raise
        return view

    def _report(self, plan: BulkPlan, view: BulkView | None) -> None:
        if self.as_json:
            counted = {"jobs": plan.jobs, "able": plan.able, "capped": plan.capped, "notes": list(plan.notes)}
            done = None if view is None else plain(view)
            print_json({"action": self.action.verb, "dry_run": self.dry_run, **counted, "bulk": done})
            return
        if self.dry_run and plan.jobs:
            say(f"{'At least ' if plan.capped else ''}{some(plan.able, 'job')} would be {self.action.verb}.", "bold")
            for note in plan.notes:
                say(f"  {one_line(note, 500)}")
        elif view is None:
            say(f"Nothing {'would be' if self.dry_run else 'was'} {self.action.verb}.", "yellow")
        elif self.detach:
            say(f"Bulk command {view.id} started on {some(view.jobs, 'job')}; workers do it.", "bold")
            say(f"  perdure bulk show {view.id}", "dim")
        else:
            self._report_done(view)

    def _report_done(self, view: BulkView) -> None:
        done = some(view.done, "job") if view.done else "Nothing"
        verb = self.action.verb if view.done else f"was {self.action.verb}"
        say(f"{done} {verb}.", "bold" if view.done else "yellow")
        say_skipped(view)
        if view.state is not BulkState.DONE:
            say(
                f"It was {view.state} before its end{'' if view.error is None else f': {one_line(view.error)}'}.",
                "yellow",
            )
        if self.limit is not None and view.seen >= self.limit:
            say("The limit was reached. If more jobs match, raise --limit, or run it again.", "dim")
        say(f"  perdure bulk show {view.id}", "dim")


def _code(view: BulkView | None) -> Exit:
    if view is None or view.state is BulkState.RUNNING:
        return Exit.OK
    if view.state is BulkState.FAILED:
        return Exit.FAILED
    return Exit.CONFLICT if view.skipped or view.state is BulkState.STOPPED else Exit.OK
