"""Figures of the audits, the webhooks and the quota."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from perdure import Desk, JobFilter, NotFoundError
from perdure_systems.audits import settings
from perdure_systems.audits.jobs import AUDIT, DELIVER, DELIVERY_WORDS, WORDS, app, records

NEARLY_USED_SHARE: Final = 0.8
_JOBS_COUNTED_LIMIT: Final = 100_000


async def stats() -> dict[str, Any]:
    """All figures. Finished jobs are counted up to 100,000 in each state."""
    desk = await app.desk("app:audits")
    now = await desk.now()
    day_ago = JobFilter(kind=AUDIT, states=("succeeded",), finished_after=now - timedelta(days=1))
    hour_ago = JobFilter(kind=AUDIT, states=("dead",), finished_after=now - timedelta(hours=1))
    audits = await _by_word(desk, AUDIT, WORDS)
    return {
        "audits": audits,
        "completed_last_day": (await desk.count(day_ago, cap=_JOBS_COUNTED_LIMIT)).jobs,
        "failed_last_hour": (await desk.count(hour_ago, cap=_JOBS_COUNTED_LIMIT)).jobs,
        "webhooks": await _by_word(desk, DELIVER, DELIVERY_WORDS),
        "races": await records.races(),
        "quota": await quota_view(desk),
    }


async def quota_view(desk: Desk) -> dict[str, Any]:
    """How much of the PageSpeed quota is used; `is_nearly_used` from four fifths on."""
    if not settings.pagespeed_url():
        return {"source": "browser", "used_last_day": 0, "per_day": None, "per_minute": None, "is_nearly_used": False}
    try:
        used = (await desk.holds.spent(settings.QUOTA)).daily
    except NotFoundError:
        used = 0
    return {
        "source": "pagespeed",
        "used_last_day": round(used),
        "per_day": settings.per_day(),
        "per_minute": settings.per_minute(),
        "is_nearly_used": used >= NEARLY_USED_SHARE * settings.per_day(),
    }


async def _by_word(desk: Desk, kind: str, words: dict[str, str]) -> dict[str, int]:
    counted = dict.fromkeys(words.values(), 0)
    for tally in await desk.count_by("state", which=JobFilter(kind=kind), cap=_JOBS_COUNTED_LIMIT):
        word = words.get(str(tally.state), str(tally.state))
        counted[word] = counted.get(word, 0) + tally.jobs
    return counted
