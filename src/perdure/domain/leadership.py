"""Leadership: one process of the fleet does the work that only one should do."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct


class Lead(Struct, frozen=True):
    """The store's answer to a process that wants to lead.

    `term` rises whenever the leader changes. `remaining` is how long the lease lasts from the time of the answer.
    """

    is_ours: bool
    term: int
    holder: str
    remaining: timedelta


class LeaderView(Struct, frozen=True, kw_only=True):
    """Who leads what, as operators see it."""

    name: str
    holder: str
    term: int
    since: datetime
    until: datetime
