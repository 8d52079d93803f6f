"""Whether the service can do its work: database, queue, disk and browser."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Final, Literal

import msgspec
import structlog

from perdure import JobFilter, StoreError
from perdure_systems.audits import settings, storage
from perdure_systems.audits.jobs import QUEUES, app, database
from perdure_systems.kit.browser import find_browser

MOST_WAITING: Final = 100
MOST_FAILURES: Final = 10
_HOUR: Final = timedelta(hours=1)

log = structlog.get_logger("perdure_systems.audits")

Level = Literal["ok", "warning", "error"]


class Check(msgspec.Struct, frozen=True):
    """What one check has found."""

    status: Level
    detail: str
    figures: dict[str, Any]


class Health(msgspec.Struct, frozen=True):
    """All checks. The worst of them is the status of the service."""

    status: Level
    warnings: list[str]
    checks: dict[str, Check]


async def health() -> Health:
    """Look at everything now."""
    looks = {"database": _database, "queue": _queue, "disk": _disk, "browser": _browser}
    checks = {name: await _looked_at(name, look) for name, look in looks.items()}
    levels = {check.status for check in checks.values()}
    status: Level = "error" if "error" in levels else "warning" if "warning" in levels else "ok"
    return Health(status, [check.detail for check in checks.values() if check.status != "ok"], checks)


@app.every("1m", per="fleet", name="audits.watch_health", at_start=False)
async def watch_health() -> None:
    """Log what is wrong."""
    found = await health()
    if found.warnings:
        log.warning("audits need attention", status=found.status, warnings=found.warnings)


async def _looked_at(name: str, look: Callable[[], Awaitable[Check]]) -> Check:
    try:
        return await look()
    except (StoreError, OSError) as error:
        return Check("error", f"{name}: {error}", {})


async def _database() -> Check:
    begun = time.perf_counter()
    await (await app.desk("app:audits")).now()
    async with database.snapshot() as session:
        await session.rows("SELECT 1 AS one")
    milliseconds = round((time.perf_counter() - begun) * 1000, 1)
    return Check("ok", f"answers within {milliseconds} ms", {"milliseconds": milliseconds})


async def _queue() -> Check:
    desk = await app.desk("app:audits")
    hour_ago = await desk.now() - _HOUR
    waiting = failures = 0
    for queue in QUEUES:
        waiting += (await desk.count(JobFilter(queue=queue, states=("ready",)))).jobs
        failures += (await desk.count(JobFilter(queue=queue, states=("dead",), finished_after=hour_ago))).jobs
    warnings = []
    if waiting > MOST_WAITING:
        warnings.append(f"{waiting} jobs wait in the queue, more than {MOST_WAITING}")
    if failures > MOST_FAILURES:
        warnings.append(f"{failures} jobs failed in the last hour, more than {MOST_FAILURES}")
    detail = "; ".join(warnings) or f"{waiting} waiting, {failures} failed in the last hour"
    return Check("warning" if warnings else "ok", detail, {"depth": waiting, "failures_last_hour": failures})


async def _disk() -> Check:
    free, least = storage.free_mb(), settings.least_free_mb()
    figures = {"free_mb": free, "least_mb": least}
    if free < least:
        return Check("warning", f"only {free:,} MB are free for reports, less than {least:,}", figures)
    return Check("ok", f"{free:,} MB are free", figures)


async def _browser() -> Check:
    path = find_browser()
    if path is None:
        return Check("error", "no Chromium is installed: reports cannot be printed", {})
    return Check("ok", path, {})
