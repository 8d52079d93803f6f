"""The log of events that other programs follow, and the cursors at which they are."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, NamedTuple

from msgspec import Struct

from perdure.errors import ArgumentError

DEFAULT_KEEP: Final = timedelta(days=3)
"""How long events are kept by default."""

_TEXT: Final = re.compile(r"([0-9a-f]{1,16})-([0-9a-f]{1,15})")


class EventType(StrEnum):
    """What can happen."""

    SUCCEEDED = "job.succeeded"
    DIED = "job.died"
    CANCELLED = "job.cancelled"
    MISSED = "schedule.missed"


class Cursor(NamedTuple):
    """A place in the log, directly after one event. As text it sorts like the log itself.

    `era` is what the engine orders by first: the event's transaction, or the time at which the log was switched on.
    """

    era: int
    number: int

    def __str__(self) -> str:
        return f"{self.era:012x}-{self.number:012x}"


BEGINNING: Final = Cursor(0, 0)


def read_cursor(field: str, text: str) -> Cursor:
    """The cursor of a text; refuses anything else by the name of its field."""
    found = _TEXT.fullmatch(text)
    if found is None:
        raise ArgumentError(field, f"must be the id of an event, got {text[:60]!r}")
    return Cursor(int(found[1], 16), int(found[2], 16))


class LoggedEvent(Struct, frozen=True, kw_only=True):
    """One logged event. `id` is its place in the log, and the cursor to continue from.

    `subject` is the id of the job, or the name of the schedule. `details` say more: the reason, failures, and the last
    error of a job that died; the nominal time of a schedule. Arguments and results are not in the log.
    """

    id: str
    type: str
    at: datetime
    subject: str
    kind: str | None = None
    queue: str | None = None
    tags: tuple[str, ...] = ()
    details: dict[str, Any] = {}


class EventLogState(Struct, frozen=True, kw_only=True):
    """Whether events are logged, since when, for how long they are kept, and which cursors are valid.

    `keep` is None while the log is switched off. A cursor before `oldest` has lost events. From `end` a follower gets
    only future events.
    """

    keep: timedelta | None = None
    since: datetime | None = None
    oldest: Cursor = BEGINNING
    end: Cursor = BEGINNING

    @property
    def is_on(self) -> bool:
        """Whether events are logged."""
        return self.keep is not None


class EventFilter(Struct, frozen=True, kw_only=True):
    """Which events to send. An empty list matches everything; one matching tag is enough."""

    events: tuple[EventType, ...] = ()
    queues: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    def lets(self, event: LoggedEvent) -> bool:
        """Whether this event matches."""
        return (
            (not self.events or event.type in self.events)
            and (not self.queues or event.queue in self.queues)
            and (not self.kinds or event.kind in self.kinds)
            and (not self.tags or not frozenset(self.tags).isdisjoint(event.tags))
        )
