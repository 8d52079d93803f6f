"""The limits that a kind declares in code, as they are stored for tools that do not have the code."""

from __future__ import annotations

from datetime import timedelta

from msgspec import Struct


class RateLimit(Struct, frozen=True, kw_only=True, tag="rate", omit_defaults=True):
    """At most `n` starts in a window; `by` says in words what has its own window, empty: all jobs share one."""

    n: int
    per: timedelta
    name: str | None = None
    by: str = ""
    spread: bool = False


class SlotLimit(Struct, frozen=True, kw_only=True, tag="slots", omit_defaults=True):
    """At most `n` jobs at a time; `by` as above."""

    n: int
    name: str | None = None
    by: str = ""


class BudgetLimit(Struct, frozen=True, kw_only=True, tag="budget", omit_defaults=True):
    """The limits of a budget in any 24 hours, 7 days and 30 days."""

    name: str
    daily: float | None = None
    weekly: float | None = None
    monthly: float | None = None


class BreakerLimit(Struct, frozen=True, kw_only=True, tag="breaker", omit_defaults=True):
    """When a breaker opens, and for how long."""

    name: str
    failures: int
    window: timedelta
    open_for: timedelta


DeclaredLimit = RateLimit | SlotLimit | BudgetLimit | BreakerLimit
