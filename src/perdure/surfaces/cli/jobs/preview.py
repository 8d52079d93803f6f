"""`perdure preview`: the future attempts of a job, with their dates (B14)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Final

import typer
from rich.table import Table
from rich.text import Text

from perdure.app.app import App
from perdure.clock import SystemClock
from perdure.domain.jobs.ids import JobId, as_job_id, is_job_id
from perdure.domain.jobs.states import JobState
from perdure.errors import ArgumentError, NotFoundError, StoreError
from perdure.operate.desk import Desk
from perdure.operate.records import JobDetail
from perdure.operate.views.retry_preview import RetryPlan, RetryPreview, preview_of_job, preview_of_kind
from perdure.operate.why.parked import is_looked_at_again
from perdure.policy.retries.preview import PlannedAt
from perdure.surfaces.cli import options
from perdure.surfaces.cli.jobs.display.job_page import timeline
from perdure.surfaces.cli.loading import load_app
from perdure.surfaces.cli.project import project
from perdure.surfaces.cli.session import with_desk
from perdure.surfaces.cli.terminal.hostile import one_line
from perdure.surfaces.cli.terminal.output import console, plain, print_json, say
from perdure.surfaces.cli.terminal.pieces import columns, section
from perdure.surfaces.cli.terminal.times import absolute, relative

_ATTEMPTS_SHOWN: Final = 20

What = Annotated[
    str, typer.Argument(metavar="KIND|ID", help="A kind of job, or the id or ref of a job.", show_default=False)
]
AppName = Annotated[
    str | None,
    typer.Option(
        "--app",
        metavar="APP",
        envvar="PERDURE_APP",
        help="module:app, which holds the policies; not needed for a job with its own.",
    ),
]
Limit = Annotated[int, typer.Option("--limit", min=1, max=500, help="At most this many attempts.")]


def show_preview(
    what: What,
    *,
    app: AppName = None,
    limit: Limit = _ATTEMPTS_SHOWN,
    url: options.Url = None,
    as_json: options.Json = False,
) -> None:
    """Show when attempts run if all of them fail.

    For a kind, the plan starts now. For a job, it shows past attempts and continues with the next one.
    """
    app = app or project().app
    loaded = None if app is None else load_app(app)
    is_kind = loaded is not None and what in loaded.kinds
    home = url or (None if loaded is None else loaded.url)
    job_id = None if is_kind else _named(what, home)
    if job_id is not None:
        _show_job(loaded, job_id, home, limit, as_json=as_json)
    elif loaded is not None:
        _show_kind(loaded, what, limit, as_json=as_json)
    else:
        raise _needs_app("of a kind")


def _show_kind(app: App, kind: str, limit: int, *, as_json: bool) -> None:
    now = SystemClock().now()
    plans = preview_of_kind(app.kinds, kind, now, limit)
    if as_json:
        print_json({"kind": kind, "job": None, "attempts": [], **plain(plans)})
        return
    _show_plans(f"{one_line(kind)}, enqueued now, if every attempt fails at once", plans, now)


def _show_job(app: App | None, job_id: JobId, url: str | None, limit: int, *, as_json: bool) -> None:
    async def look(desk: Desk) -> tuple[JobDetail, datetime]:
        return await desk.job(job_id), await desk.now()

    detail, now = with_desk(url, look)
    job = detail.job
    plans = preview_of_job(None if app is None else app.kinds, job, now, limit)
    if plans is None:
        raise _needs_app("of the job's kind")
    if as_json:
        head = {"id": job.id, "state": job.state, "reason": job.reason}
        print_json({"kind": job.kind, "job": head, "attempts": plain(detail.attempts), **plain(plans)})
        return
    out = console()
    out.print(Text.assemble((one_line(job.kind), "bold"), f"  {job.id}  {job.state}: {one_line(job.reason)}"))
    if detail.attempts:
        out.print(section("Attempts that did not succeed", timeline(detail.attempts, now, traceback=False)))
    if plans.plan:
        under_way = job.state is JobState.RUNNING
        _show_plans("\nAhead, if every attempt fails at once", plans, now, under_way=under_way)
        if is_looked_at_again(job):
            say("The first time is the next look at its gate, which may hold it for longer.", "dim")
    else:
        say(f"\nIt is {job.state}: no attempt is ahead.", "dim")


def _needs_app(whose: str) -> ArgumentError:
    return ArgumentError("--app", f"is needed: the policy {whose} is in code; give it as --app module:app")


def _show_plans(title: str, plans: RetryPreview, now: datetime, *, under_way: bool = False) -> None:
    say(f"{title}{' with an error that has no rule of its own' if plans.by_error else ''}:", "bold")
    _show_plan(plans, now, under_way=under_way)
    for name, plan in plans.by_error.items():
        say(f"\nWith {one_line(name)}:", "bold")
        _show_plan(plan, now, under_way=under_way)


def _show_plan(shown: RetryPreview | RetryPlan, now: datetime, *, under_way: bool = False) -> None:
    plan = shown.plan
    console().print(_table(plan, now, under_way=under_way))
    if shown.more:
        say("And so on: --limit shows more.", "dim")
    else:
        say(f"After attempt {plan[-1].attempt} the job is dead: {plan[-1].then}.", "red")


def _table(plan: Sequence[PlannedAt], now: datetime, *, under_way: bool) -> Table:
    table = columns("#", "At the earliest", "At the latest", "When")
    for index, step in enumerate(plan):
        latest = absolute(step.latest) if step.latest != step.earliest else ""
        when = "under way" if under_way and index == 0 else _when(step, now)
        table.add_row(Text(str(step.attempt), style="bold"), Text(absolute(step.earliest)), Text(latest), Text(when))
    return table


def _when(step: PlannedAt, now: datetime) -> str:
    earliest, latest = relative(step.earliest, now), relative(step.latest, now)
    return earliest if earliest == latest else f"{earliest} to {latest.removeprefix('in ')}"


def _named(text: str, url: str | None) -> JobId | None:
    """The job with this id or ref; None: the name must be a kind."""
    if is_job_id(text):
        return as_job_id(text)
    try:
        return with_desk(url, lambda desk: desk.job_by_ref(text)).id
    except (ArgumentError, NotFoundError, StoreError):  # a kind needs no database
        return None
