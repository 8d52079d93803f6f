"""What the desk's `/readyz` looks at for audits besides database, workers and queues: failures, storage and browser."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import structlog

from perdure import JobFilter
from perdure.desk import Check, Condition, HealthSettings
from perdure_systems.audits import settings, storage
from perdure_systems.audits.jobs import QUEUES, app
from perdure_systems.kit.browser import find_browser

READY_JOBS_LIMIT: Final = 100
FAILURES_LIMIT: Final = 10
_HOUR: Final = timedelta(hours=1)

log = structlog.get_logger("perdure_systems.audits")


async def audits() -> Check:
    """How many audits and webhooks were given up in the last hour."""
    desk = await app.desk("app:audits")
    since = await desk.now() - _HOUR
    which = [JobFilter(queue=queue, states=("dead",), finished_after=since) for queue in QUEUES]
    failures = sum([(await desk.count(one)).jobs for one in which])
    status = Condition.WARNING if failures > FAILURES_LIMIT else Condition.OK
    return Check("audits", status, f"{failures} jobs failed in the last hour")


async def reports() -> Check:
    """Whether there is room for reports and pictures."""
    free, least = storage.free_mb(), settings.least_free_mb()
    if free < least:
        return Check("reports", Condition.WARNING, f"only {free:,} MB are free for reports, less than {least:,}")
    return Check("reports", Condition.OK, f"{free:,} MB are free")


async def browser() -> Check:
    """Whether there is a browser for pictures and reports."""
    path = find_browser()
    if path is None:
        return Check("browser", Condition.FAILED, "no Chromium is installed: reports cannot be printed")
    return Check("browser", Condition.OK, path)


HEALTH: Final = HealthSettings(depth=READY_JOBS_LIMIT, failures=FAILURES_LIMIT, checks=(audits, reports, browser))


@app.every("1m", per="fleet", name="audits.watch_health", at_start=False)
async def watch_health() -> None:
    """Log what is wrong with this machine: the desk shows it only to those who look."""
    found = [await audits(), await reports(), await browser()]
    warnings = [check.seen for check in found if check.status is not Condition.OK]
    if warnings:
        log.warning("audits need attention", warnings=warnings)
