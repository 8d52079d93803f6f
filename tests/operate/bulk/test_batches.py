"""Bulk commands on filters that no index serves go through the jobs step by step."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.support.builders.jobs import HOUR, enqueue, numbered_id

from perdure.operate.bulk import batches
from perdure.operate.desk import Desk
from perdure.storage.operate.bulk import BulkState
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Reach


async def test_a_bulk_command_goes_on_behind_a_stretch_without_a_match(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "_REACH", Reach(3, timedelta(hours=1)))
    for number in range(30):
        kind = "rare" if number in {2, 20} else "common"
        await enqueue(store, id=numbered_id(number), kind=kind, delay=HOUR)
    desk = Desk(store, "ada")
    started = await desk.start_bulk(await desk.plan("mark", JobFilter(kind="rare"), mark="seen"))
    runner = batches.BulkBatches(store, "test")
    hold = await runner.take(started.id)
    steps = 0
    while hold is not None and hold.view.state is BulkState.RUNNING:
        hold = await runner.do_next(hold)
        steps += 1
    assert hold is not None
    assert (hold.view.state, hold.view.done, steps > 5) == (BulkState.DONE, 2, True)
    assert {job.id for job in (await desk.jobs(JobFilter(mark="seen"))).jobs} == {numbered_id(2), numbered_id(20)}
