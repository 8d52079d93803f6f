"""E1, E2: one audit for a page, whoever asks and however many at once."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perdure import JobFilter
from perdure.testing import Sandbox
from perdure_systems.audits import intake
from perdure_systems.audits.intake import create_or_find
from perdure_systems.audits.jobs import AUDIT, app, audit, records
from perdure_systems.audits.standins import Outside, QuickInstruments

Setting = Callable[[str, str], None]
RACER = Path(__file__).with_name("racer.py")
ROUNDS, PROCESSES, REQUESTS = 8, 2, 6


async def test_e1_a_race_of_processes_ends_in_one_audit_and_no_exception_and_is_logged_and_counted(
    engine_url: str, box: Sandbox
) -> None:
    """Two processes ask six times each for the same page, at the same moment, eight times over."""
    processes = [await _racer(engine_url) for _ in range(PROCESSES)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"go\n")
    texts = [(await asyncio.wait_for(process.communicate(), 60))[0].decode() for process in processes]
    assert [process.returncode for process in processes] == [0] * PROCESSES, texts

    lines = [line for text in texts for line in text.splitlines()]
    rounds = [json.loads(line.removeprefix("round ")) for line in lines if line.startswith("round ")]
    assert len(rounds) == ROUNDS * PROCESSES
    for number in range(ROUNDS):
        given = [tuple(one) for answer in rounds[number::ROUNDS] for one in answer]
        assert len({audit_id for audit_id, _ in given}) == 1, "one audit"
        assert [is_new for _, is_new in given].count(True) == 1, "made by one of them"
    assert (await (await app.desk("test")).count(JobFilter(kind=AUDIT))).jobs == ROUNDS

    logged = sum("audit request raced" in line for line in lines)
    assert logged >= 1, "the processes met"
    assert await records.races() == logged


async def _racer(url: str) -> asyncio.subprocess.Process:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        RACER,
        str(ROUNDS),
        str(REQUESTS),
        env={**os.environ, "PERDURE_URL": url},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    while (line := await process.stdout.readline()).strip() != b"ready":
        assert line, "the process ended"
    return process


class Vanishing:
    """Finds an audit that is gone when it is looked at, as often as told."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.tries = 0

    def using(self, **options: Any) -> Any:
        self.tries += 1
        return self if self.tries <= self.times else audit.using(**options)

    async def enqueue(self, *_: object) -> Any:
        return audit.handle(str(uuid.uuid4()))


@pytest.mark.parametrize("gone", [1, 3])
async def test_e1_there_are_at_most_three_tries_10_20_and_40_ms_apart_then_it_is_fetched(
    box: Sandbox, monkeypatch: pytest.MonkeyPatch, gone: int
) -> None:
    there = await create_or_find("https://atlas.example/", "mobile")
    vanishing = Vanishing(gone)
    monkeypatch.setattr(intake, "audit", vanishing)
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    found = await create_or_find("https://atlas.example/", "mobile", sleep=sleep)
    assert (found.id, found.is_new) == (there.id, False)
    assert waited == [0.010, 0.020, 0.040][:gone]
    assert vanishing.tries == min(gone + 1, 3)


async def test_e2_whether_an_audit_stands_for_its_page_goes_by_its_state(
    box: Sandbox, outside: Outside, quick: QuickInstruments
) -> None:
    url = outside.page
    first = await create_or_find(url, "mobile")
    assert first.is_new
    box.travel("10d")
    assert await same(url, first), "pending, however long ago"

    quick.broken["pdf"] = OSError("no space left")
    await box.drain()
    assert (await box.job(first.id)).word == "processing"
    assert await same(url, first), "processing: between two attempts"

    quick.broken.clear()
    await box.drain(travel=True)
    assert (await box.job(first.id)).word == "completed"
    second = await create_or_find(url, "mobile")
    assert second.is_new, "completed a moment ago"
    assert (await create_or_find(url, "desktop")).is_new, "another strategy is another audit"


@pytest.mark.parametrize("seconds", [300, 60])
async def test_e2_a_failed_audit_stands_for_its_page_for_five_minutes_or_as_long_as_is_set(
    box: Sandbox, outside: Outside, quick: QuickInstruments, settings: Setting, seconds: int
) -> None:
    if seconds != 300:
        settings("AUDITS_FAILED_RETRY_AFTER", str(seconds))
    quick.broken["pdf"] = OSError("no space left")
    first = await create_or_find(outside.page, "mobile")
    await box.drain(travel=True)
    assert (await box.job(first.id)).word == "failed"

    box.travel(seconds - 1)
    assert await same(outside.page, first)
    box.travel(2)
    assert (await create_or_find(outside.page, "mobile")).is_new


async def same(url: str, first: intake.Taken) -> bool:
    found = await create_or_find(url, "mobile")
    return found.id == first.id and not found.is_new
