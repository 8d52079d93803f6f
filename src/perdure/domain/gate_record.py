"""The gates that each attempt of a job has met: which it passed, and how long they held the job before."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct


class GateSort(StrEnum):
    """What a gate limits."""

    BREAKER = "breaker"
    RATE = "rate"
    BUDGET = "budget"
    CONCURRENCY = "concurrency"


class GateVisit(Struct, frozen=True, kw_only=True):
    """How an attempt met one gate.

    `key` is the gate's name, with the value of its key if it has one. `passed_at` is
    the last time that it passed; None: it has not passed yet. `passes` counts more than one if the attempt was parked
    in between. `held_since` and `held_until` are those of the last hold; `held_until` None: it is held there now.
    `held_seconds` is the time of all holds that are over, `note` what the gate said at the last one.
    """

    gate: GateSort
    key: str
    passed_at: datetime | None = None
    passes: int = 0
    estimate: float | None = None  # of a budget
    held_since: datetime | None = None
    held_until: datetime | None = None
    held_seconds: float = 0.0
    note: str | None = None

    @property
    def is_held(self) -> bool:
        """Whether it holds the job now."""
        return self.held_since is not None and self.held_until is None

    def held_for(self, now: datetime) -> timedelta:
        """How long it has held the job so far, in all."""
        since = self.held_since if self.is_held else None
        return timedelta(seconds=self.held_seconds) + (
            timedelta(0) if since is None else max(now - since, timedelta(0))
        )


class GateRecord(Struct, frozen=True):
    """The gates that one attempt has met, in the order in which they were checked or held it."""

    attempt: int
    visits: tuple[GateVisit, ...]
