"""B2, B5, B10, B12: in which order schedules run, what is logged, what is never done, and what is cleaned up."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from structlog.typing import EventDict
from systems.tests.engines import on_sqlite
from tests.support.databases.behind import query
from tests.support.waiting import until

from perdure import Context, Event, JobFilter, JobStarted, Worker
from perdure.testing import Sandbox
from perdure_systems.flags.jobs import APPLY, WORKER, app, database
from perdure_systems.flags.records import Change, Updates
from perdure_systems.flags.standins import CacheStandIn
from perdure_systems.flags.store import change_flag

from .conftest import MINUTE, NOON, Faults, Run, instant, make_flag, make_schedule, shown

SECOND = timedelta(seconds=1)


async def status(client: httpx.AsyncClient, key: str, schedule_id: str) -> Any:
    answer = await client.get(f"/api/admin/flags/{key}/schedule/{schedule_id}")
    return answer.json()["status"] if answer.status_code == 200 else answer.status_code


@asynccontextmanager
async def working() -> AsyncIterator[Worker]:
    """A real worker of the system, on the sandbox's clock."""
    worker = await app.worker(WORKER)
    running = asyncio.create_task(worker.run())
    await worker.started()
    try:
        yield worker
    finally:
        await worker.wait_for_completion("20s")
        await running


async def test_b2_retries_go_first_then_new_ones_each_the_earliest_first(
    client: httpx.AsyncClient, box: Sandbox, faults: Faults, runs: list[Run]
) -> None:
    """All are due when a processor comes by, minutes late. New ones that were due before the retries go after them."""
    failing = [await make_schedule(client, f"failing-{n}", NOON + MINUTE + n * SECOND) for n in range(3)]
    new = {
        minute: await make_schedule(client, f"new-{minute}", NOON + minute * MINUTE, priority=priority)
        for minute, priority in ((5, "normal"), (2, "normal"), (6, "high"), (3, "normal"), (2.5, "low"))
    }
    later = await make_schedule(client, "later", NOON + 30 * MINUTE)
    await faults.break_flags()
    box.travel("1m10s")
    await box.drain()
    assert [run.schedule_id for run in runs] == failing
    due = {name: instant((await shown(client, f"failing-{n}", name))["nextRetryAt"]) for n, name in enumerate(failing)}
    assert all(NOON + 3 * MINUTE <= at < NOON + 4 * MINUTE for at in due.values())
    await faults.mend()
    runs.clear()
    box.travel("10m")
    await box.drain()
    retries = sorted(failing, key=due.__getitem__)
    assert [run.schedule_id for run in runs] == [*retries, *(new[minute] for minute in (6, 2, 3, 5, 2.5))]
    assert later not in {run.schedule_id for run in runs}


@on_sqlite
async def test_b2_a_hundred_a_run(client: httpx.AsyncClient, box: Sandbox, settings: pytest.MonkeyPatch) -> None:
    """A processor holds at most 100 schedules, takes the others when it has done these, and leaves none."""
    for n in range(3):
        await make_flag(f"flag-{n}")
    body = {"updates": {"enabled": True}, "scheduledAt": (NOON + MINUTE).isoformat()}
    for n in range(3):
        batch = [{"flagKey": f"flag-{n}", "schedule": body}] * 80
        assert (await client.post("/api/admin/flag-schedules", json={"schedules": batch})).status_code == 201
    may_go, begin = asyncio.Event(), Context.transaction

    @asynccontextmanager
    async def begin_later(ctx: Context) -> AsyncIterator[Any]:
        await may_go.wait()
        async with begin(ctx) as connection:
            yield connection

    settings.setattr(Context, "transaction", begin_later)
    box.travel("1m")
    desk = await app.desk("test")
    async with working() as worker:
        await until(lambda: worker.running >= 100)
        await asyncio.sleep(0.3)  # time enough to take more, if it did
        counts = {str(one.state): one.jobs for one in await desk.count_by("state")}
        assert (counts.get("running"), worker.running) == (100, 100)
        may_go.set()
        await until(lambda: worker.finished >= 240)
    assert [(str(one.state), one.jobs) for one in await desk.count_by("state")] == [("succeeded", 240)]


@on_sqlite
async def test_b5_the_log_of_a_retry_and_of_its_success(
    client: httpx.AsyncClient, box: Sandbox, faults: Faults, runs: list[Run], logged: list[EventDict]
) -> None:
    schedule_id = await make_schedule(client, "dark-mode", NOON + MINUTE)
    await faults.break_flag("dark-mode")
    box.travel("1m")
    await box.drain()
    next_at = (await shown(client, "dark-mode", schedule_id))["nextRetryAt"]
    await faults.mend()
    await box.drain(travel=True)
    about = {"scheduleId": schedule_id, "flagKey": "dark-mode", "retryCount": 1}
    retrying, applied = (line for line in logged if "chedule" in line["event"])
    assert instant(retrying.pop("nextRetryAt")) == instant(next_at)
    assert retrying == {"event": "Retrying failed schedule", "log_level": "info", **about}
    assert applied == {"event": "Schedule applied on retry", "log_level": "info", **about}
    assert len(runs) == 2


@on_sqlite
async def test_b5_the_log_of_a_limit_that_is_exceeded(
    client: httpx.AsyncClient, box: Sandbox, faults: Faults, logged: list[EventDict]
) -> None:
    schedule_id = await make_schedule(client, "dark-mode", NOON + MINUTE)
    await faults.break_flag("dark-mode")
    await box.drain(travel="1h")
    lines = [line for line in logged if "chedule" in line["event"]]
    retries = [(line["retryCount"], line["log_level"]) for line in lines if line["event"] == "Retrying failed schedule"]
    assert retries == [(1, "info"), (2, "info"), (3, "info")]
    last = lines[-1]
    assert "the disk is broken" in last.pop("lastError")
    assert last == {
        "event": "Schedule retry limit exceeded",
        "log_level": "error",
        "scheduleId": schedule_id,
        "flagKey": "dark-mode",
        "retryCount": 3,
        "nextRetryAt": None,
    }
    assert len(lines) == 4


@on_sqlite
async def test_b5_a_first_success_is_no_retry(client: httpx.AsyncClient, box: Sandbox, logged: list[EventDict]) -> None:
    await make_schedule(client, "dark-mode", NOON + MINUTE)
    await box.drain(travel="1h")
    assert [line for line in logged if "chedule" in line["event"]] == []


async def test_b10_what_the_original_did_would_be_seen(client: httpx.AsyncClient, box: Sandbox) -> None:
    """Both processors look, both locks end with their SELECT, both apply: the record of changes has two rows.

    Two workers of ours on the same database leave one row for each schedule.
    """
    twice = [await make_schedule(client, f"twice-{n}", NOON + MINUTE) for n in range(5)]
    box.travel("1m")
    desk = await app.desk("test")
    looks = [(await desk.jobs(JobFilter(kind=APPLY, states="scheduled"))).jobs for _ in range(2)]
    for seen in looks:
        for job in seen:
            async with database.transaction() as session:
                await change_flag(
                    session,
                    job.arguments["flag_key"],
                    Updates(enabled=True),
                    at=box.now,
                    by="x",
                    schedule_id=job.ref,
                )
    assert await changes_by_schedule() == dict.fromkeys(twice, 2)
    await desk.cancel(twice)
    once = [await make_schedule(client, f"once-{n}", NOON + 2 * MINUTE) for n in range(50)]
    box.travel("1m")
    async with working() as one, working() as two:
        await until(lambda: one.finished + two.finished >= 50)
    assert await changes_by_schedule() == dict.fromkeys(twice, 2) | dict.fromkeys(once, 1)


async def changes_by_schedule() -> dict[str | None, int]:
    """How often each schedule has changed its flag."""
    changes = await database.all(Change, "SELECT * FROM flag_change WHERE schedule_id IS NOT NULL")
    return dict(Counter(change.schedule_id for change in changes))


@on_sqlite
async def test_b10_a_cancelled_schedule_is_never_retried(
    client: httpx.AsyncClient, box: Sandbox, faults: Faults, runs: list[Run]
) -> None:
    """Cancelled while it waits for its retry, by an operator."""
    schedule_id = await make_schedule(client, "dark-mode", NOON + MINUTE)
    await faults.break_flag("dark-mode")
    box.travel("1m")
    await box.drain()
    await (await app.desk("bob")).cancel(schedule_id)
    await box.drain(travel="2h")
    assert len(runs) == 1
    seen = await shown(client, "dark-mode", schedule_id)
    assert (seen["status"], seen["cancelledBy"], seen["nextRetryAt"]) == ("cancelled", "bob", None)


@on_sqlite
async def test_b10_cancelled_while_it_runs_and_fails_it_is_not_retried(
    client: httpx.AsyncClient, box: Sandbox, settings: pytest.MonkeyPatch, runs: list[Run]
) -> None:
    """The attempt fails after the cancellation was sent: that failure must not bring it back."""
    schedule_id = await make_schedule(client, "dark-mode", NOON + MINUTE)
    sent: list[asyncio.Task[Any]] = []

    async def cancel_and_fail(*_: object, **__: object) -> None:
        sent.append(asyncio.create_task((await app.desk("bob")).cancel(schedule_id)))
        if not app.url.startswith("sqlite:"):  # there it comes in when the transaction that runs now has ended
            await asyncio.shield(sent[0])
        raise OSError("the disk is broken")

    settings.setattr("perdure_systems.flags.jobs.change_flag", cancel_and_fail)
    box.travel("1m")
    await box.drain()
    await asyncio.gather(*sent)
    await box.drain(travel="2h")
    assert len(runs) == 1
    assert (await shown(client, "dark-mode", schedule_id))["status"] == "cancelled"


@on_sqlite
async def test_b10_one_failure_never_blocks_the_others(client: httpx.AsyncClient, box: Sandbox, faults: Faults) -> None:
    await faults.break_flag("flag-0")
    ids = [await make_schedule(client, f"flag-{n}", NOON + MINUTE + n * SECOND) for n in range(10)]
    box.travel("2m")
    drained = await box.drain()
    assert (drained.retrying, drained.succeeded) == (1, 9)
    assert [await status(client, f"flag-{n}", name) for n, name in enumerate(ids)] == ["failed", *["applied"] * 9]


async def test_b10_all_times_are_utc(client: httpx.AsyncClient, box: Sandbox, runs: list[Run]) -> None:
    """A time is given in another zone; all that is told and done is in UTC."""
    east = datetime(2026, 3, 1, 18, 35, tzinfo=UTC).isoformat().replace("+00:00", "+05:30")  # 13:05 UTC
    schedule_id = await make_schedule(client, "dark-mode", NOON, scheduledAt=east)
    await box.drain(travel="3h")
    assert [run.at for run in runs] == [datetime(2026, 3, 1, 13, 5, tzinfo=UTC)]
    seen = await shown(client, "dark-mode", schedule_id)
    for name in ("scheduledAt", "appliedAt", "createdAt"):
        assert instant(seen[name]).utcoffset() == timedelta(0), name


async def test_b10_a_retry_that_cannot_be_saved_is_itself_logged(
    client: httpx.AsyncClient, box: Sandbox, faults: Faults, engine_url: str, logged: list[EventDict]
) -> None:
    """The flag cannot be changed, and then the database refuses the record of the retry."""
    schedule_id = await make_schedule(client, "dark-mode", NOON + MINUTE)
    await faults.break_flag("dark-mode")
    refuse_retries(engine_url)
    box.travel("1m")
    async with working():
        await until(lambda: any(line["event"] == "Failed to save schedule retry" for line in logged))
        allow_retries(engine_url)
    line = next(line for line in logged if line["event"] == "Failed to save schedule retry")
    assert line["log_level"] == "error"
    assert "no room" in line["error"] or "no_retry" in line["error"]
    seen = await shown(client, "dark-mode", schedule_id)
    assert seen["status"] == "failed"
    assert (seen["nextRetryAt"] is None) == seen["needsOperator"], "it is not lost: retried, or left to an operator"


def refuse_retries(url: str) -> None:
    """The database refuses to record that a job waits for its retry."""
    if url.startswith("sqlite:"):
        body = "WHEN NEW.state = 'retrying' BEGIN SELECT RAISE(ABORT, 'no room'); END"
        query(url, f"CREATE TRIGGER no_retry BEFORE INSERT ON {{parked}} {body}")
    else:
        query(url, "ALTER TABLE {parked} ADD CONSTRAINT no_retry CHECK (state <> 'retrying') NOT VALID")


def allow_retries(url: str) -> None:
    """It records them again."""
    if url.startswith("sqlite:"):
        query(url, "DROP TRIGGER no_retry")
    else:
        query(url, "ALTER TABLE {parked} DROP CONSTRAINT no_retry")


@on_sqlite
async def test_b12_the_clean_up_runs_at_two_and_spares_what_is_still_needed(
    client: httpx.AsyncClient, box: Sandbox, faults: Faults, cache: CacheStandIn
) -> None:
    """Applied 90 days, cancelled 30, failed kept; retrying, and applied with a cache that fails, are spared."""
    began: list[datetime] = []

    def hear(event: Event) -> None:
        if isinstance(event, JobStarted) and event.kind == "flags.clean_up":
            began.append(box.now)

    stop = app.subscribe(hear, JobStarted)
    at = {"scheduledAt": (NOON + MINUTE).isoformat()}
    ids = {key: await make_schedule(client, key, NOON, **at) for key in ("applied", "cancelled", "failed")}
    ids["retrying"] = await make_schedule(client, "retrying", NOON, scheduledAt="2026-05-31T01:58:30Z")
    await client.delete(f"/api/admin/flags/cancelled/schedule/{ids['cancelled']}")
    await client.delete("/api/admin/flags/failed")
    await box.drain(travel="1h")
    cache.failing = -1
    ids["uncached"] = await make_schedule(client, "uncached", box.now + MINUTE)
    await box.drain(travel="2h")
    await faults.break_flag("retrying")

    async def left() -> set[str]:
        return {key for key, name in ids.items() if await status(client, key, name) != 404}

    for until_, expected in (
        (datetime(2026, 3, 31, 3, tzinfo=UTC), set(ids)),  # 29 days and 14 hours
        (datetime(2026, 4, 1, 3, tzinfo=UTC), set(ids) - {"cancelled"}),
        (datetime(2026, 5, 30, 3, tzinfo=UTC), set(ids) - {"cancelled"}),  # 89 days and 14 hours
        (datetime(2026, 5, 31, 1, 59, tzinfo=UTC), set(ids) - {"cancelled"}),
        (datetime(2026, 5, 31, 3, tzinfo=UTC), {"failed", "uncached", "retrying"}),
    ):
        began.clear()
        if until_ - box.now > timedelta(hours=2):
            box.travel_to(until_ - timedelta(hours=2))
        await box.drain(travel=until_ - box.now)
        assert await left() == expected, until_
        if until_.hour == 3:
            assert began[-1].strftime("%H:%M:%S") == "02:00:00"
    assert await status(client, "retrying", ids["retrying"]) in {"failed", "applied"}
    stop()
