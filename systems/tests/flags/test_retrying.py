"""B3, B4, B8, B9, B11: how often and how soon a failed schedule is tried again."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from random import Random

import httpx
import pytest
from systems.tests.engines import on_sqlite

from perdure import LifespanError, SettingsError
from perdure.testing import Sandbox
from perdure_systems.flags.jobs import app, apply
from perdure_systems.flags.policy import STANDARD, RetryPolicy, calculate_next_retry_at
from perdure_systems.flags.settings import read_settings

from .conftest import MINUTE, NOON, Faults, Run, instant, make_flag, make_schedule, shown

JITTER = timedelta(seconds=30)


@pytest.mark.parametrize(("failures", "minutes"), [(0, 2), (1, 4), (2, 8), (3, 16), (4, 32)])
def test_b3_the_wait_doubles_from_two_minutes_with_up_to_30_s_more(failures: int, minutes: int) -> None:
    waits = [calculate_next_retry_at(failures, NOON) - NOON for _ in range(200)]
    assert minutes * MINUTE <= min(waits) < minutes * MINUTE + JITTER / 4
    assert minutes * MINUTE + JITTER * 3 / 4 < max(waits) <= minutes * MINUTE + JITTER


@pytest.mark.parametrize("failures", [5, 10, 1_000])
def test_b4_the_wait_is_capped_at_60_minutes_before_the_jitter(failures: int) -> None:
    waits = [calculate_next_retry_at(failures, NOON) - NOON for _ in range(200)]
    assert min(waits) >= 60 * MINUTE
    assert 60 * MINUTE + JITTER / 2 < max(waits) <= 60 * MINUTE + JITTER, "the jitter comes on top of the cap"


@on_sqlite
async def test_b3_b4_a_schedule_waits_as_calculated(
    client: httpx.AsyncClient, box: Sandbox, faults: Faults, runs: list[Run]
) -> None:
    """Ten retries: what the engine does is what `calculate_next_retry_at` says, also past the cap."""
    await make_schedule(client, "dark-mode", NOON + MINUTE, maxRetries=10)
    await faults.break_flag("dark-mode")
    await box.drain(travel="12h")
    assert len(runs) == 11
    for failures, (run, following) in enumerate(pairwise(runs)):
        wait = min(2 ** (failures + 1), 60) * MINUTE
        assert wait <= following.at - run.at <= wait + JITTER


@pytest.mark.parametrize(
    ("engine_url", "most", "waits"),
    [("sqlite", 3, [2, 4, 8]), ("postgres", 3, [2, 4, 8]), ("sqlite", 5, [2, 4, 8, 16, 32])],
    indirect=["engine_url"],
)
async def test_b9_all_retries_run_the_last_one_included(
    client: httpx.AsyncClient, box: Sandbox, faults: Faults, runs: list[Run], most: int, waits: list[int]
) -> None:
    """The original scheduled the 8-minute retry of max_retries = 3 and never ran it."""
    schedule_id = await make_schedule(client, "dark-mode", NOON + MINUTE, maxRetries=most)
    await faults.break_flag("dark-mode")
    await box.drain(travel="10h")
    assert runs[0].at == NOON + MINUTE
    assert len(runs) == 1 + most
    assert [(after.at - run.at) // MINUTE for run, after in pairwise(runs)] == waits
    assert (await shown(client, "dark-mode", schedule_id))["retryCount"] == most


@on_sqlite
async def test_b9_the_last_retry_can_still_succeed(
    client: httpx.AsyncClient, box: Sandbox, faults: Faults, runs: list[Run]
) -> None:
    schedule_id = await make_schedule(client, "dark-mode", NOON + MINUTE)
    await faults.break_flag("dark-mode")
    await box.drain(travel=True, until=lambda: len(runs) == 3)
    assert (await shown(client, "dark-mode", schedule_id))["retryCount"] == 3
    await faults.mend()
    await box.drain(travel=True)
    seen = await shown(client, "dark-mode", schedule_id)
    assert (seen["status"], seen["retryCount"], len(runs)) == ("applied", 3, 4)


@on_sqlite
async def test_b8_the_default_comes_from_the_environment(
    client: httpx.AsyncClient, box: Sandbox, faults: Faults, runs: list[Run], settings: pytest.MonkeyPatch
) -> None:
    settings.setenv("FLAG_SCHEDULE_MAX_RETRIES", "1")
    by_default = await make_schedule(client, "one", NOON + MINUTE)
    of_its_own = await make_schedule(client, "two", NOON + MINUTE, maxRetries=2)
    never = await make_schedule(client, "three", NOON + MINUTE, maxRetries=0)
    await faults.break_flags()
    await box.drain(travel="5h")
    counted = [sum(run.schedule_id == name for run in runs) for name in (by_default, of_its_own, never)]
    assert counted == [2, 3, 1]
    assert (await shown(client, "one", by_default))["maxRetries"] == 1
    assert (await shown(client, "two", of_its_own))["maxRetries"] == 2


@pytest.mark.parametrize("value", [15, 11, -1])
@on_sqlite
async def test_b8_a_number_out_of_bounds_is_refused_by_name(
    client: httpx.AsyncClient, box: Sandbox, settings: pytest.MonkeyPatch, value: int
) -> None:
    await make_flag("dark-mode")
    body = {"updates": {"enabled": True}, "scheduledAt": "2026-03-01T12:01:00Z"}
    for bad in ({"maxRetries": value}, {"retryPolicy": {"maxRetries": value}}):
        answer = await client.post("/api/admin/flags/dark-mode/schedule", json={**body, **bad})
        assert answer.status_code == 400
        assert "maxRetries" in answer.json()["field"]
        bound = ">= 0" if value < 0 else "<= 10"
        assert answer.json()["detail"] == f"Expected `int` {bound} - at `{answer.json()['field']}`, got {value}"
    assert box.enqueued(apply) == []
    settings.setenv("FLAG_SCHEDULE_MAX_RETRIES", str(value))
    wanted = f"FLAG_SCHEDULE_MAX_RETRIES must be a whole number from 0 to 10, got {value}"
    with pytest.raises(SettingsError, match=wanted):
        read_settings()
    refused = await client.post("/api/admin/flags/dark-mode/schedule", json=body)
    assert (refused.status_code, refused.json()["detail"]) == (400, wanted)
    worker = await app.worker()
    with pytest.raises(LifespanError, match=wanted):
        await worker.run()


def test_b8_the_engine_keeps_the_bounds_as_well() -> None:
    """Whatever code enqueues a schedule, not only the API."""
    with pytest.raises(SettingsError, match="must be from 1 to 11, got 16"):
        apply.using(retry=RetryPolicy(15).retry())
    with pytest.raises(SettingsError, match="must be from 1 to 11"):
        apply.using(retry=STANDARD.retry().limited_to(16))


def test_b11_jitter_is_even_over_its_range() -> None:
    """100 draws: each tenth of the 30 s is hit about equally often."""
    random = Random(2119)  # noqa: S311 - a test that must be repeatable
    draws = [(calculate_next_retry_at(0, NOON, random) - NOON - 2 * MINUTE) / JITTER for _ in range(100)]
    assert all(0 <= draw <= 1 for draw in draws)
    tenths = [sum(int(draw * 10) == tenth for draw in draws) for tenth in range(10)]
    assert sum((count - 10) ** 2 / 10 for count in tenths) < 21.7, tenths  # chi square, 9 degrees, 1 %
    assert abs(sum(draws) / 100 - 0.5) < 0.1


async def test_b11_a_due_time_on_an_exact_minute_is_taken(
    client: httpx.AsyncClient, box: Sandbox, runs: list[Run]
) -> None:
    schedule_id = await make_schedule(client, "dark-mode", NOON + 5 * MINUTE)
    box.travel_to(NOON + 5 * MINUTE - timedelta(microseconds=1))
    await box.drain()
    assert runs == []
    box.travel_to(NOON + 5 * MINUTE)
    await box.drain()
    seen = await shown(client, "dark-mode", schedule_id)
    assert (seen["status"], instant(seen["appliedAt"])) == ("applied", NOON + 5 * MINUTE)
