"""Bulk commands: one action on all jobs that match a filter, planned, confirmed, and run in batches."""

from __future__ import annotations

from typing import Final

from msgspec import UNSET, Struct, UnsetType

from perdure.operate.bulk.records import BulkPlan
from perdure.storage.operate.bulk import BulkView
from perdure.surfaces.api.filters import Filter, read_cursor, write_cursor
from perdure.surfaces.api.handlers.jobs.commands import Because, Command, mark_for
from perdure.surfaces.api.route import Call, Given
from perdure.surfaces.api.values import Instant, Limit
from perdure.surfaces.server.requests import path_to

_LISTED: Final = ["bulk"]


class BulkQuery(Given, frozen=True, kw_only=True):
    """How many bulk commands."""

    limit: Limit = 50
    cursor: str | None = None


class PlanBody(Given, frozen=True, kw_only=True):
    """The command, and its jobs. `limit`: at most this many, newest first.

    `run_at` is for reschedule, `mark` for mark: null removes it.
    """

    action: Command
    filter: Filter = Filter()
    run_at: Instant | None = None
    mark: str | UnsetType | None = UNSET
    limit: int | None = None


class StartBody(Given, frozen=True, kw_only=True):
    """The token of the dry run to confirm."""

    token: str
    why: str | None = None


class BulkList(Struct, frozen=True):
    """A page of bulk commands, newest first. `next` is the `cursor` of the following page; null: this is the last."""

    bulk: tuple[BulkView, ...]
    next: str | None


async def plan_bulk(call: Call[None, PlanBody]) -> BulkPlan:
    """Dry-run a bulk command: count what it would do.

    Nothing is changed. Give `token` to `POST /bulk` within ten minutes to start it.
    """
    body = call.body
    mark = mark_for(body.action, body.mark, body.run_at)
    which = await body.filter.read(call.desk)
    return await call.desk.plan(body.action, which, mark=mark, run_at=body.run_at, limit=body.limit)


async def start_bulk(call: Call[None, StartBody]) -> BulkView:
    """Start a planned bulk command.

    Workers and desks run it in batches, and resume it after a crash. 409 if the dry run is too old, or the number of
    matching jobs has changed.
    """
    view = await call.desk.start_bulk(call.body.token, why=call.body.why)
    if call.site.bulk is not None:
        call.site.bulk.wake()
    call.headers["location"] = path_to(call.request, f"/api/v1/bulk/{view.id}")
    return view


async def list_bulk(call: Call[BulkQuery, None]) -> BulkList:
    """List bulk commands, newest first."""
    before = read_cursor(_LISTED, call.query.cursor)
    page = await call.desk.bulks(call.query.limit, before)
    return BulkList(page.bulks, write_cursor(_LISTED, page.next))


async def show_bulk(call: Call[None, None]) -> BulkView:
    """Show the progress of a bulk command, and what it skipped."""
    return await call.desk.bulk(call.path["id"])


async def stop_bulk(call: Call[None, Because]) -> BulkView:
    """Stop a bulk command after its current batch."""
    return await call.desk.stop_bulk(call.path["id"], why=call.body.why)
