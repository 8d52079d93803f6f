"""The database's time, without a query."""

from __future__ import annotations

from datetime import datetime, timedelta

from perdure.clock import Clock
from perdure.domain.jobs.job import Claim


def database_time(clock: Clock, claim: Claim, started: float) -> datetime:
    """The database's time at the claim plus the time measured here since: this machine's date does not matter."""
    return claim.claimed_at + timedelta(seconds=clock.monotonic() - started)
