"""E1, E2: one audit for a page, for any caller and any number of calls at once."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from systems.tests.audits.racer import ask

from perdure import JobFilter
from perdure.testing import Sandbox
from perdure_systems.audits import intake
from perdure_systems.audits.intake import create_or_find
from perdure_systems.audits.jobs import AUDIT, app, audit, database, records
from perdure_systems.audits.standins import Outside, QuickInstruments

Setting = Callable[[str, str], None]
RACER = Path(__file__).with_name("racer.py")
PATIENCE = 120  # seconds, on a machine that does much else


@pytest.fixture
async def racing(engine_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """The app on the machine's own time, which the other processes go by as well."""
    monkeypatch.setattr(app, "url", engine_url)
    async with app:
        await database.migrate()
        yield engine_url
        await database.close()


async def test_e1_a_race_of_processes_ends_in_one_audit_and_no_exception_and_is_logged_and_counted(
    racing: str,
) -> None:
    """This process and another ask six times each for the same page, at the same moment, eight times over."""
    await race(racing, processes=1, rounds=8, requests=6)


@pytest.mark.proof
async def test_e1_a_long_race_of_many_processes(racing: str) -> None:
    await race(racing, processes=4, rounds=60, requests=8)


async def race(url: str, *, processes: int, rounds: int, requests: int) -> None:
    others = [await _racer(url, rounds, requests) for _ in range(processes)]
    for process in others:
        assert process.stdin is not None
        process.stdin.write(b"go\n")
    with capture_logs() as logs:
        mine = [await ask(number, requests) for number in range(rounds)]
    texts = [(await asyncio.wait_for(process.communicate(), PATIENCE))[0].decode() for process in others]
    assert [process.returncode for process in others] == [0] * processes, texts

    lines = [line for text in texts for line in text.splitlines()]
    theirs = [json.loads(line.removeprefix("round ")) for line in lines if line.startswith("round ")]
    assert len(theirs) == rounds * processes
    for number in range(rounds):
        given = [tuple(one) for answer in [mine[number], *theirs[number::rounds]] for one in answer]
        assert len(given) == requests * (processes + 1)
        assert len({audit_id for audit_id, _ in given}) == 1, "one audit"
        assert [is_new for _, is_new in given].count(True) == 1, "made by one of them"
    assert (await (await app.desk("test")).count(JobFilter(kind=AUDIT))).jobs == rounds

    raced = "audit request raced"
    logged = sum(f"{raced} " in f"{line} " for line in lines) + sum(log["event"] == raced for log in logs)
    assert logged >= 1, "the processes met"
    assert await records.races() == logged


async def _racer(url: str, rounds: int, requests: int) -> asyncio.subprocess.Process:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        RACER,
        str(rounds),
        str(requests),
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


@pytest.mark.parametrize(("engine_url", "gone"), [("sqlite", 1), ("postgres", 3)], indirect=["engine_url"])
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


@pytest.mark.parametrize(
    ("engine_url", "seconds"), [("sqlite", 300), ("postgres", 300), ("sqlite", 60)], indirect=["engine_url"]
)
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
