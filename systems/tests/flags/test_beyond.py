"""B14: what the original deferred."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

import apsw
import httpx
import psycopg.errors
import pytest
from structlog.typing import EventDict
from systems.tests.engines import on_sqlite

from perdure.testing import Sandbox
from perdure_systems.flags.jobs import QUEUE, database
from perdure_systems.flags.records import Change
from perdure_systems.flags.standins import CacheStandIn
from perdure_systems.notifications.standins import StandIns

from .conftest import MINUTE, NOON, Faults, Run, instant, make_flag, make_schedule, shown

SECOND = timedelta(seconds=1)


async def get(client: httpx.AsyncClient, path: str) -> Any:
    answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def breakers(operator: httpx.AsyncClient) -> dict[str, str]:
    """The states of the breakers, as the desk shows them."""
    found = await operator.get("/desk/api/v1/breakers")
    return {one["name"]: one["state"] for one in found.json()["breakers"]}


async def give_up(client: httpx.AsyncClient, box: Sandbox, faults: Faults, key: str = "dark-mode") -> str:
    """A schedule whose retries are used up."""
    schedule_id = await make_schedule(client, key, box.now + MINUTE)
    await faults.break_flag(key)
    await box.drain(travel="1h")
    await faults.mend()
    return schedule_id


async def test_b14_an_alert_is_sent_once_when_the_limit_is_passed(
    client: httpx.AsyncClient, box: Sandbox, faults: Faults
) -> None:
    schedule_id = await make_schedule(client, "dark-mode", NOON + MINUTE)
    await faults.break_flag("dark-mode")
    await box.look_for_alerts()
    await box.drain(travel="10m")
    assert await box.look_for_alerts() == (), "it still retries"
    await box.drain(travel="1h")
    notices = [notice for _ in range(3) for notice in await box.look_for_alerts()]
    [alert] = notices
    assert (alert.rule, alert.severity, alert.count) == ("flags.apply", "critical", 1)
    assert "the disk is broken" in alert.title
    assert [one.channel for one in alert.deliveries] == ["operators"]
    await client.post(f"/api/admin/flags/dark-mode/schedule/{schedule_id}/retry")
    await box.drain("flags", travel="1h")
    [again] = await box.look_for_alerts()
    assert again.count == 2


@on_sqlite
async def test_b14_an_alert_is_delivered_by_mail_and_outlives_a_mail_server_that_is_away(
    client: httpx.AsyncClient, box: Sandbox, faults: Faults, settings: pytest.MonkeyPatch
) -> None:
    async with StandIns() as outside:
        settings.setenv("FLAG_ALERT_ADDRESS", "smtp://127.0.0.1:1/?from=a@example.com&to=b@example.com&tls=none")
        await box.look_for_alerts()
        await give_up(client, box, faults)
        [alert] = await box.look_for_alerts()
        await box.drain("perdure-alerts")
        assert outside.taken["email"] == []
        where = f"smtp://127.0.0.1:{outside.smtp_port}/?from=a@example.com&to=b@example.com&tls=none"
        settings.setenv("FLAG_ALERT_ADDRESS", where)
        await box.drain("perdure-alerts", travel="1h")
        [mail] = outside.taken["email"]
    assert mail.headers["subject"] == f"[CRITICAL] {alert.title}"


@on_sqlite
async def test_b14_an_alert_reports_a_cache_after_a_change_by_hand(
    client: httpx.AsyncClient, box: Sandbox, cache: CacheStandIn
) -> None:
    cache.failing = -1
    await box.look_for_alerts()
    await client.post("/api/admin/flags", json={"key": "dark-mode"})
    await box.drain(travel="1h")
    [alert] = await box.look_for_alerts()
    assert alert.rule == "flags.invalidate"
    assert "perdure dead list --group " in alert.body


@on_sqlite
async def test_b14_the_metrics_show_rates_and_the_backlog(
    client: httpx.AsyncClient, operator: httpx.AsyncClient, box: Sandbox, faults: Faults
) -> None:
    """Seven applied, one of them on a retry; one given up; one retrying, one to come."""
    for number in range(6):
        await make_schedule(client, f"good-{number}", NOON + MINUTE)
    await make_schedule(client, "shaky", NOON + MINUTE)
    await faults.break_flag("shaky")
    box.travel("1m")
    await box.drain()
    await faults.mend()
    await box.drain(travel="1h")
    await make_schedule(client, "lost", box.now + MINUTE, maxRetries=1)
    await faults.break_flag("lost")
    await box.drain(travel="1h")
    await make_schedule(client, "future", box.now + 600 * MINUTE)
    await make_schedule(client, "waiting", box.now + SECOND)
    await faults.mend()
    await faults.break_flag("waiting")
    box.travel(SECOND)
    await box.drain()
    found = await get(client, "/api/admin/flag-schedules/metrics")
    assert (found["applied"], found["appliedOnRetry"], found["failed"]) == (7, 1, 1)
    assert (found["successRate"], found["failureRate"], found["retrySuccessRate"]) == (0.875, 0.125, 0.5)
    assert found["failedTries"] == 3
    assert [found["backlog"][key] for key in ("due", "retrying", "scheduled", "held")] == [0, 1, 1, 0]
    text = (await operator.get("/desk/metrics")).text
    assert f'perdure_cluster_jobs{{queue="{QUEUE}",state="retrying"}} 1.0' in text
    assert f'perdure_cluster_jobs{{queue="{QUEUE}",state="dead"}} 1.0' in text


async def test_b14_an_operator_retries_by_hand(
    client: httpx.AsyncClient, box: Sandbox, faults: Faults, runs: list[Run]
) -> None:
    schedule_id = await give_up(client, box, faults)
    runs.clear()
    answer = await client.post(f"/api/admin/flags/dark-mode/schedule/{schedule_id}/retry")
    assert answer.status_code == 200
    await box.drain()
    seen = await shown(client, "dark-mode", schedule_id)
    assert (seen["status"], len(runs)) == ("applied", 1)
    refused = await client.post(f"/api/admin/flags/dark-mode/schedule/{schedule_id}/retry")
    assert (refused.status_code, refused.json()["field"]) == (400, "scheduleId")
    assert "is applied: only a failed one can be retried" in refused.json()["detail"]


@on_sqlite
async def test_b14_a_waiting_retry_can_be_made_now(
    client: httpx.AsyncClient, box: Sandbox, faults: Faults, runs: list[Run]
) -> None:
    schedule_id = await make_schedule(client, "dark-mode", NOON + MINUTE)
    await faults.break_flag("dark-mode")
    box.travel("1m")
    await box.drain()
    await faults.mend()
    assert (await client.post(f"/api/admin/flags/dark-mode/schedule/{schedule_id}/retry")).status_code == 200
    await box.drain()
    assert [run.at for run in runs] == [NOON + MINUTE] * 2
    assert (await shown(client, "dark-mode", schedule_id))["status"] == "applied"


@on_sqlite
async def test_b14_the_history_of_retries_outlives_a_manual_retry(
    client: httpx.AsyncClient, box: Sandbox, faults: Faults
) -> None:
    schedule_id = await give_up(client, box, faults)
    await client.post(f"/api/admin/flags/dark-mode/schedule/{schedule_id}/retry")
    await box.drain()
    history = await get(client, f"/api/admin/flags/dark-mode/schedule/{schedule_id}/history")
    tries = history["tries"]
    assert [one["number"] for one in tries] == [1, 2, 3, 4]
    assert [one["nextRetryAt"] is None for one in tries] == [False, False, False, True]
    assert all("the disk is broken" in one["error"] for one in tries)
    assert instant(tries[0]["startedAt"]) == NOON + MINUTE
    assert [(deed["by"], deed["action"]) for deed in history["actions"]] == [("ada", "requeue")]
    assert history["schedule"]["status"] == "applied"


@on_sqlite
async def test_b14_a_schedule_has_a_policy_of_its_own(
    client: httpx.AsyncClient, box: Sandbox, faults: Faults, runs: list[Run]
) -> None:
    policy = {"maxRetries": 4, "firstWaitSeconds": 10, "factor": 3, "capSeconds": 60, "jitterSeconds": 0}
    schedule_id = await make_schedule(client, "dark-mode", NOON + MINUTE, retryPolicy=policy)
    await faults.break_flag("dark-mode")
    await box.drain(travel="1h")
    assert [(run.at - NOON - MINUTE).total_seconds() for run in runs] == [0, 10, 40, 100, 160]
    assert (await shown(client, "dark-mode", schedule_id))["retryPolicy"] == policy


@on_sqlite
async def test_b14_a_preview_shows_the_timeline_and_stores_nothing(client: httpx.AsyncClient, box: Sandbox) -> None:
    body = {"updates": {"enabled": True}, "scheduledAt": (NOON + MINUTE).isoformat()}
    answer = await client.post("/api/admin/flag-schedules/preview", json=body)
    assert answer.status_code == 200
    runs = answer.json()["runs"]
    since = [(instant(run["earliest"]) - NOON, instant(run["latest"]) - NOON) for run in runs]
    minutes = [(early / MINUTE - 1, late / MINUTE - 1) for early, late in since]
    assert minutes == [(0, 0), (2, 2.5), (6, 7), (14, 15.5)]
    assert [run["ifItFails"] for run in runs] == [*["retried"] * 3, "failed: an operator is needed"]
    assert box.enqueued() == []


@on_sqlite
async def test_b14_the_timeline_of_a_schedule_goes_on_from_where_it_is(
    client: httpx.AsyncClient, box: Sandbox, faults: Faults
) -> None:
    schedule_id = await make_schedule(client, "dark-mode", NOON + MINUTE)
    path = f"/api/admin/flags/dark-mode/schedule/{schedule_id}"
    assert [run["run"] for run in (await get(client, f"{path}/timeline"))["runs"]] == [1, 2, 3, 4]
    await faults.break_flag("dark-mode")
    box.travel("1m")
    await box.drain()
    ahead = (await get(client, f"{path}/timeline"))["runs"]
    assert [run["run"] for run in ahead] == [2, 3, 4]
    assert instant(ahead[0]["earliest"]) == instant((await shown(client, "dark-mode", schedule_id))["nextRetryAt"])
    await box.drain(travel="1h")
    assert (await get(client, f"{path}/timeline"))["runs"] == []


async def test_b14_backoff_goes_by_the_type_of_error(
    client: httpx.AsyncClient, box: Sandbox, runs: list[Run], settings: pytest.MonkeyPatch
) -> None:
    """Another writer in the way passes within seconds; a broken disk does not."""
    errors = {"busy": apsw.BusyError, "deadlock": psycopg.errors.DeadlockDetected, "disk": OSError}

    async def fail(_: object, key: str, *__: object, **___: object) -> None:
        raise errors[key]("no")

    settings.setattr("perdure_systems.flags.jobs.change_flag", fail)
    ids = [await make_schedule(client, key, NOON + (hour + 1) * 60 * MINUTE) for hour, key in enumerate(errors)]
    await box.drain(travel="5h")  # apart from each other, so that the breaker has nothing to say
    for schedule_id, waits in zip(ids, ((5, 15, 45), (5, 15, 45), (120, 240, 480)), strict=True):
        times = [run.at for run in runs if run.schedule_id == schedule_id]
        drawn = [(after - before).total_seconds() for before, after in pairwise(times)]
        assert all(low <= wait <= low + 30 for wait, low in zip(drawn, waits, strict=True)), drawn


@on_sqlite
async def test_b14_urgent_schedules_go_first(client: httpx.AsyncClient, box: Sandbox, runs: list[Run]) -> None:
    at = NOON + MINUTE
    ids = {name: await make_schedule(client, name, at, priority=name) for name in ("low", "normal", "high")}
    box.travel("1m")
    await box.drain()
    assert [run.schedule_id for run in runs] == [ids["high"], ids["normal"], ids["low"]]


async def test_b14_a_database_that_fails_is_left_alone_by_a_breaker(
    client: httpx.AsyncClient, operator: httpx.AsyncClient, box: Sandbox, faults: Faults, runs: list[Run]
) -> None:
    """Five failures open it. The other schedules wait at no cost, and all are applied once the database works."""
    await faults.break_flags()
    ids = [await make_schedule(client, f"flag-{number:02}", NOON + MINUTE) for number in range(20)]
    box.travel("1m")
    await box.drain()
    assert len(runs) == 5
    held = [await shown(client, f"flag-{number:02}", name) for number, name in enumerate(ids)]
    assert sum(one["retryCount"] for one in held) == 5
    assert await breakers(operator) == {"flags.database": "open"}
    await faults.mend()
    await box.drain(travel="30m")
    seen = [await shown(client, f"flag-{number:02}", name) for number, name in enumerate(ids)]
    assert {one["status"] for one in seen} == {"applied"}
    assert await breakers(operator) == {"flags.database": "closed"}


async def test_b14_a_batch_of_schedules_is_made_whole_or_not_at_all(client: httpx.AsyncClient, box: Sandbox) -> None:
    for key in ("one", "two"):
        await make_flag(key)
    good = {"updates": {"rollout": 10}, "scheduledAt": (NOON + MINUTE).isoformat()}
    batch = [{"flagKey": key, "schedule": good} for key in ("one", "two", "one")]
    path = "/api/admin/flag-schedules"
    made = await client.post(path, json={"schedules": batch})
    assert (made.status_code, [one["flagKey"] for one in made.json()["schedules"]]) == (201, ["one", "two", "one"])
    for bad, code in (
        ([*batch, {"flagKey": "none", "schedule": good}], 404),
        ([*batch, {"flagKey": "two", "schedule": {**good, "scheduledAt": NOON.isoformat()}}], 400),
        ([], 400),
        (batch * 34, 400),
    ):
        assert (await client.post(path, json={"schedules": bad})).status_code == code
    listed = (await get(client, path))["schedules"]
    assert len(listed) == len(box.enqueued()) == 3


async def test_b14_a_cache_that_cannot_be_invalidated_counts_as_a_failure_and_changes_the_flag_once(
    client: httpx.AsyncClient, box: Sandbox, cache: CacheStandIn, logged: list[EventDict]
) -> None:
    schedule_id = await make_schedule(client, "dark-mode", NOON + MINUTE, maxRetries=3)
    assert (await get(client, "/api/flags/dark-mode/evaluate?userId=ada"))["enabled"] is False
    cache.failing = 2
    box.travel("1m")
    await box.drain()
    seen = await shown(client, "dark-mode", schedule_id)
    assert (seen["status"], seen["retryCount"], seen["appliedAt"]) == ("failed", 1, None)
    assert "503" in seen["lastError"]
    assert 2 * MINUTE <= instant(seen["nextRetryAt"]) - box.now <= 2.5 * MINUTE
    assert (await get(client, "/api/flags/dark-mode/evaluate?userId=ada"))["enabled"] is False, "the old copy"
    figures = await get(client, "/api/admin/flag-schedules/metrics")
    assert (figures["applied"], figures["failed"], figures["backlog"]["retrying"]) == (0, 0, 1), "as the schedule says"
    assert (await get(client, "/api/admin/flags/dark-mode"))["flag"]["enabled"] is True, "the change is made"
    await box.drain(travel=True)
    seen = await shown(client, "dark-mode", schedule_id)
    assert (seen["status"], seen["retryCount"], seen["nextRetryAt"]) == ("applied", 2, None)
    assert box.now - NOON - MINUTE >= 6 * MINUTE, "2 and 4 minutes"
    assert (await get(client, "/api/flags/dark-mode/evaluate?userId=ada"))["enabled"] is True
    changes = await database.all(Change, "SELECT * FROM flag_change WHERE flag_key = 'dark-mode' ORDER BY version")
    assert [(one.action, one.schedule_id) for one in changes] == [("created", None), ("changed", schedule_id)]
    assert (cache.invalidations, cache.refused) == ([("dark-mode", 2)], 2)
    figures = await get(client, "/api/admin/flag-schedules/metrics")
    assert (figures["applied"], figures["failed"], figures["backlog"]["retrying"]) == (1, 0, 0)
    lines = [(line["event"], line["retryCount"]) for line in logged if "chedule" in line["event"]]
    retrying = "Retrying failed schedule"
    assert lines == [(retrying, 1), (retrying, 2), ("Schedule applied on retry", 2)]


@on_sqlite
async def test_b14_failures_of_the_flag_and_of_the_cache_share_one_limit(
    client: httpx.AsyncClient, box: Sandbox, faults: Faults, cache: CacheStandIn, runs: list[Run]
) -> None:
    """Two failures of the flag leave one retry to the cache, after the 8 minutes that are its turn."""
    schedule_id = await make_schedule(client, "dark-mode", NOON + MINUTE)
    await box.look_for_alerts()
    cache.failing = -1
    await faults.break_flag("dark-mode")
    await box.drain(travel=True, until=lambda: len(runs) == 2)
    await faults.mend()
    await box.drain(travel=True)
    assert [run.kind.removeprefix("flags.") for run in runs] == ["apply"] * 3 + ["invalidate"] * 2
    assert 8 * MINUTE <= runs[4].at - runs[3].at <= 8.5 * MINUTE
    seen = await shown(client, "dark-mode", schedule_id)
    assert (seen["status"], seen["retryCount"], seen["needsOperator"]) == ("failed", 3, True)
    figures = await get(client, "/api/admin/flag-schedules/metrics")
    assert (figures["applied"], figures["failed"], figures["failureRate"]) == (0, 1, 1.0)
    assert [alert.rule for alert in await box.look_for_alerts()] == ["flags.invalidate"]
    history = await get(client, f"/api/admin/flags/dark-mode/schedule/{schedule_id}/history")
    assert [one["part"] for one in history["tries"]] == ["flag", "flag", "cache", "cache"]
    cache.failing = 0
    assert (await client.post(f"/api/admin/flags/dark-mode/schedule/{schedule_id}/retry")).status_code == 200
    await box.drain("flags")
    assert (await shown(client, "dark-mode", schedule_id))["status"] == "applied"
    assert (await get(client, "/api/admin/flags/dark-mode"))["flag"]["version"] == 2


@on_sqlite
async def test_b14_a_reader_cannot_put_an_old_copy_back(client: httpx.AsyncClient, cache: CacheStandIn) -> None:
    """It has read the flag before the change and writes its copy after the invalidation."""
    await make_flag("dark-mode")
    await get(client, "/api/flags/dark-mode/evaluate?userId=ada")
    old = cache.copies["dark-mode"]
    cache.floors["dark-mode"] = 2
    cache.copies.clear()
    async with httpx.AsyncClient() as reader:
        assert (await reader.put(f"{cache.url}/flags/dark-mode", content=old)).status_code == 409
    assert cache.copies == {}


@on_sqlite
async def test_b14_without_a_cache_there_is_nothing_to_invalidate(
    client: httpx.AsyncClient, box: Sandbox, runs: list[Run]
) -> None:
    await make_schedule(client, "dark-mode", NOON + MINUTE)
    await box.drain(travel="1h")
    assert [run.kind for run in runs] == ["flags.apply"]
