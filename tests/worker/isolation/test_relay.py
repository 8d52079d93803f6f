"""Steps, waits, children, progress and log lines of handlers in processes of their own, by way of their worker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.programs import isolated_flows

from perdure import JobState
from perdure.events import Event, FamilySpawned, StepGivenUp
from perdure.testing import Sandbox


@pytest.mark.parametrize("name", ["plain", "eventual"])
async def test_e3_an_isolated_handler_takes_steps_and_waits_like_any_other(
    name: str, engine_url: str, tmp_path: Path
) -> None:
    told: list[Event] = []
    unsubscribe = isolated_flows.app.subscribe(told.append)
    job: Any = getattr(isolated_flows, name)
    async with Sandbox(isolated_flows.app, url=engine_url, isolate=True) as box:
        handle = await job.enqueue(str(tmp_path / "tally"))
        await box.drain()
        asleep = await box.job(handle)
        assert (asleep.state, asleep.reason) == (JobState.WAITING, "sleeping")
        await box.drain(travel=True)
        assert (await box.job(handle)).awaits == "event:paid"
        await isolated_flows.app.emit("paid", 3)
        await box.drain()
        view, progress = await box.job(handle), await handle.progress()
        lines = (await (await isolated_flows.app.desk("test")).job(handle.id)).lines
    unsubscribe()

    assert json.loads(view.result or "null") == [1, 2, None, [2, 4], 3, False]
    assert view.warnings == ("step shot gave up: OSError: no camera",)
    assert (view.failures, view.crashes) == (0, 0)
    assert (tmp_path / "tally").read_text().splitlines() == ["first", "later"]
    assert progress is not None
    assert (progress.current, progress.total, progress.note) == (1, 2, "half way")
    assert {line.text for line in lines} == {"hello from a process pages=3"}
    assert [event.step for event in told if isinstance(event, StepGivenUp)] == ["shot"]
    assert [event.children for event in told if isinstance(event, FamilySpawned)] == [2]


async def test_a_result_that_cannot_be_kept_is_refused_by_name_in_a_process_too(engine_url: str) -> None:
    async with Sandbox(isolated_flows.app, url=engine_url, isolate=True) as box:
        handle = await isolated_flows.odd.enqueue()
        await box.drain()
        view = await box.job(handle)
    assert view.state is JobState.DEAD
    assert "step odd returned a value that cannot be stored as JSON" in (view.last_error or "")


async def test_c8_children_of_an_isolated_parent_are_cancelled_with_its_end(engine_url: str) -> None:
    async with Sandbox(isolated_flows.app, url=engine_url, isolate=True) as box:
        handle = await isolated_flows.leaves_children.enqueue()
        await box.drain()
        assert (await box.job(handle)).state is JobState.SUCCEEDED
        [child] = await (await isolated_flows.app.store()).children(handle.id, "spawn")
    assert (child.fate, child.error) == (JobState.CANCELLED, "parent job completed")


async def test_e3_what_a_process_has_kept_outlives_it(engine_url: str) -> None:
    async with Sandbox(isolated_flows.app, url=engine_url, isolate=True) as box:
        handle = await isolated_flows.talks_and_dies.enqueue()
        await box.drain()
        detail = await (await isolated_flows.app.desk("test")).job(handle.id)
    assert [(step.key, step.result) for step in detail.steps] == [("kept", "3")]
    assert "ProcessDied" in (detail.job.last_error or "")
