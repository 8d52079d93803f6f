"""What evaluations remember: each failure is new once, whoever looks, and what is too old is forgotten."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec

from perdure.operate.alerts.memory import Memory, read_memory
from perdure.storage.operate.alerts import RecentFailure

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def group(deaths: int, *, first_at: datetime = NOON) -> RecentFailure:
    return RecentFailure(
        fingerprint="f",
        kind="charge",
        error_type="ValueError",
        message="no",
        first_at=first_at,
        last_at=first_at,
        deaths={NOON: deaths},
    )


def after(memory: Memory, now: datetime) -> Memory:
    """The memory as the next evaluation reads it."""
    memory.forget(now)
    return read_memory(msgspec.json.encode(memory).decode())


def test_what_is_there_at_the_first_look_is_not_news() -> None:
    memory = Memory()
    assert memory.learn_failures([group(3, first_at=NOON - MINUTE)], NOON, NOON) == []
    memory = after(memory, NOON)
    assert memory.learn_failures([group(3)], NOON + MINUTE, NOON) == []


def test_only_what_came_since_the_last_look_is_counted() -> None:
    memory = after(Memory(), NOON - 10 * MINUTE)
    [died] = memory.learn_failures([group(3)], NOON, NOON)
    assert (died.deaths, died.is_new) == (3, True)
    memory = after(memory, NOON)
    [more] = memory.learn_failures([group(5)], NOON + MINUTE, NOON)
    assert (more.deaths, more.is_new) == (2, False)
    assert memory.learn_failures([group(4)], NOON + MINUTE, NOON) == [], "pruned jobs raise nobody"
    now = NOON + MINUTE
    assert memory.died_within(5 * MINUTE, None, now) == {"charge": 5}
    assert memory.died_within(timedelta(seconds=30), "charge", now) == {"charge": 2}
    assert memory.died_within(5 * MINUTE, "mail", now) == {}


def test_it_stays_small() -> None:
    memory = after(Memory(), NOON - 10 * MINUTE)
    memory.learn_failures([group(3)], NOON, NOON)
    memory = after(memory, NOON + timedelta(hours=8))
    assert (memory.seen, memory.deaths) == ({}, {})
