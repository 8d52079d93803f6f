"""Starts a planned bulk command, and runs it in the foreground."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from typing import Final

from perdure.domain.operate.audit import By
from perdure.errors import NotFoundError
from perdure.operate.bulk.batches import BulkBatches, first_cursor
from perdure.operate.bulk.confirmation import bulk_id as id_of
from perdure.operate.bulk.planning import read_plan
from perdure.operate.bulk.records import BulkPlan
from perdure.storage.operate.bulk import BulkState, BulkView, NewBulk
from perdure.storage.port import Store

_LOOK_INTERVAL_SECONDS: Final = 0.3  # while another runner works on it


async def start_planned(store: Store, plan: BulkPlan | str, by: By) -> BulkView:
    """Start a planned bulk command; ConflictError if the plan is no longer valid."""
    confirmed = await read_plan(store, plan)
    new = NewBulk(
        id=id_of(plan if isinstance(plan, str) else plan.token),
        action=confirmed.action,
        filter=confirmed.filter,
        params=confirmed.params,
        jobs=confirmed.jobs,
        capped=confirmed.capped,
        cursor=await first_cursor(store, confirmed.filter),
    )
    return await store.start_bulk(new, by)


async def work_on(store: Store, bulk_id: str, runner: str) -> AsyncIterator[BulkView]:
    """Run a bulk command here; while another runner has it, watch its progress."""
    batches = BulkBatches(store, f"{runner} {secrets.token_hex(4)}")
    view = found_bulk(bulk_id, await store.bulk(bulk_id))
    while view.state is BulkState.RUNNING:
        hold = await batches.take(bulk_id)
        while hold is not None and hold.view.state is BulkState.RUNNING:
            yield hold.view
            hold = await batches.do_next(hold)
        if hold is None:
            await asyncio.sleep(_LOOK_INTERVAL_SECONDS)
        view = found_bulk(bulk_id, await store.bulk(bulk_id))
        if hold is None and view.state is BulkState.RUNNING:
            yield view
    yield view


def found_bulk(bulk_id: str, view: BulkView | None) -> BulkView:
    """The bulk command, if there is one; raises NotFoundError."""
    if view is None:
        raise NotFoundError(f"there is no bulk command {bulk_id!r}: `perdure bulk list` shows them")
    return view
