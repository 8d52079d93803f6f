"""Where in line a job with a fair key stands.

Each key has its jobs one step apart, from the front of the line on: a key that hands in many reaches far back, and one
that hands in a few comes in between. What a key has had before does not count: only what it has waiting.

Turns follow the clock, so a step is a span of time: a key stands in line as if it had handed in one job for each step.
Jobs without a key stand where they came, whatever the others have waiting.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from perdure.domain.ids import JobId
from perdure.domain.job import NewJob
from perdure.engines.sqlite.plan import Ask, Do, Part, Statements

STEP: Final = 10_000  # microseconds


def fair_turns(sql: Statements, jobs: Sequence[NewJob], newest: int) -> Part[dict[JobId, int]]:
    """The turns of those jobs that have a fair key; `newest` is the end of the line now."""
    fair = [(job, job.fair_key) for job in jobs if job.fair_key is not None]
    turns: dict[JobId, int] = {}
    if not fair:
        return turns
    yield Do(sql["lock"], {})
    last: dict[tuple[str, int, str], int] = {}
    for job, key in fair:
        share = (job.queue, job.priority, key)
        if share not in last:
            last[share] = yield from _after(sql, *share, newest)
        last[share] += STEP
        turns[job.id] = last[share]
    return turns


def _after(sql: Statements, queue: str, priority: int, key: str, newest: int) -> Part[int]:
    line = {"queue": queue, "priority": priority}
    front: list[tuple[int]] = yield Ask(sql["front_turn"], line)
    if not front:
        return newest
    own: list[tuple[int]] = yield Ask(sql["last_fair_turn"], line | {"key": key})
    return max(front[0][0], own[0][0]) if own else front[0][0]
