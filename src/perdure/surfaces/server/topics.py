"""What streams can follow."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

import msgspec

from perdure.domain.jobs.states import JobState
from perdure.operate.desk import Desk
from perdure.storage.records import JobFilter
from perdure.surfaces.server.live import Ask, Topic

_JOBS_COUNTED: Final = 100  # jobs in each queue and state
_COUNTED: Final = JobFilter(states=frozenset(JobState) - {JobState.RUNNING})  # running jobs are counted by worker
_REFRESH_INTERVAL_SECONDS: Final = 5.0


async def _overview(desk: Desk) -> object:
    """The overview without its timestamp, which always differs."""
    seen = await desk.overview()
    return {"counts": seen.counts, "workers": seen.workers}


async def _workers(desk: Desk) -> object:
    return {"workers": await desk.workers()}


async def _revision(desk: Desk) -> object:
    """A value that changes with the counts of jobs, with workers, with operators' commands, and over time.

    Counts have a low cap, so that the query stays cheap. A count at its cap no longer changes, although statistics do:
    therefore the value also changes every few seconds.
    """
    counts = await desk.count_by("queue", "state", which=_COUNTED, cap=_JOBS_COUNTED)
    workers = [(one.id, one.phase, one.running, one.dead_at, one.quiet_at) for one in await desk.workers()]
    trail = (await desk.audit(limit=1)).entries
    stretch = int((await desk.now()).timestamp() / _REFRESH_INTERVAL_SECONDS)
    content = msgspec.json.encode([counts, workers, [entry.id for entry in trail], stretch])
    return {"revision": hashlib.blake2b(content, digest_size=8).hexdigest()}


TICK: Final = Topic("tick", "tick", _revision)
TOPICS: Final[Mapping[str, Ask]] = {"overview": _overview, "workers": _workers, "tick": _revision}
"""The topics that the API offers by name."""


def topic_of_job(name: str) -> Topic:
    """One job with its history."""
    return Topic("job", f"job {name}", lambda desk: desk.job(name))
