"""Time limits of queries: no page of the desk keeps the database busy longer than a person waits.

The limit goes with the call, in a context variable: engines read the rest of it when a statement begins. On PostgreSQL
the statement gets it as its `statement_timeout`, on SQLite the reader interrupts a statement that takes too long. Both
raise StoreTimeout. Commands have no limit: half a command is worse than a slow one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from functools import wraps
from typing import Any, Final, cast

from perdure.errors import StoreTimeout
from perdure.storage.port import Store

QUESTIONS: Final = frozenset(
    (
        *(
            "now",
            "job",
            "jobs",
            "search",
            "attempts",
            "costs",
            "gate_records",
            "key_holder",
            "counts",
            "count",
            "overdue",
            "fronts",
        ),
        *("failure_groups", "failure_hours", "statistics", "statistic_totals", "audit", "workers", "leaders"),
        *("kinds", "tokens", "live_token", "session", "bulk", "bulks", "emitted", "orphans"),
        *("asking", "waiting", "paused", "parked_ahead", "schedule", "schedules", "fires", "last_fires"),
        *("pauses", "breakers", "spent", "budgets", "steps", "family", "families", "children", "progress", "lines"),
        *("event_log", "read_events", "webhooks"),
        *("alert_rules", "alert_channels", "alerts", "notices", "notice", "budget_limits", "recent_failures"),
        *("alert_book", "missed_fires", "why_read_only"),
    )
)
"""The methods of a store that only read."""

_deadline: ContextVar[float | None] = ContextVar("perdure_deadline", default=None)


@contextmanager
def time_limit(limit: timedelta | None) -> Iterator[None]:
    """Limit the total time of the queries in this block; None: no limit."""
    token = _deadline.set(None if limit is None else time.monotonic() + limit.total_seconds())
    try:
        yield
    finally:
        _deadline.reset(token)


def deadline() -> float | None:
    """The deadline of the current query, by the monotonic clock; None: there is no limit."""
    return _deadline.get()


def too_late() -> StoreTimeout:
    """The error for a query that takes too long."""
    return StoreTimeout("the database did not answer within the time limit: narrow the search, or ask again later")


def limited(store: Store, limit: timedelta | None) -> Store:
    """The same store, with this time limit for each query."""
    return store if limit is None else cast("Store", _Limited(store, limit))


class _Limited:
    """Passes calls on, queries with their time limit."""

    def __init__(self, store: Store, limit: timedelta) -> None:
        self._store = store
        self._limit = limit

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if name not in QUESTIONS:
            return method

        @wraps(method)
        async def ask(*args: Any, **kwargs: Any) -> Any:
            with time_limit(self._limit):
                return await method(*args, **kwargs)

        return ask
