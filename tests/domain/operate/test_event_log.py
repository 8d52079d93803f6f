"""Cursors and filters of the log of events."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from tests.support.builders.views import NOON

from perdure.domain.operate.event_log import BEGINNING, Cursor, EventFilter, EventType, LoggedEvent, read_cursor
from perdure.domain.operate.webhook import DELIVERY, Webhook
from perdure.errors import ArgumentError


def an_event(**changes: Any) -> LoggedEvent:
    plain: dict[str, Any] = {
        "id": "1-1",
        "type": "job.died",
        "at": NOON,
        "subject": "j",
        "kind": "mail",
        "queue": "slow",
    }
    return LoggedEvent(**plain | changes)


def test_cursors_as_text_sort_like_the_log() -> None:
    cursors = [Cursor(era, number) for era, number in product((0, 9, 10, 2**40), (0, 1, 255, 2**40))]
    assert sorted(map(str, cursors)) == [str(cursor) for cursor in cursors]
    assert [read_cursor("after", str(cursor)) for cursor in cursors] == cursors
    assert read_cursor("after", str(BEGINNING)) == BEGINNING


@pytest.mark.parametrize(
    "text", ["", "1", "1-", "-1", "1-1-1", "G-1", "A-1", "1-1\n", "0x1-1", f"1-{'f' * 16}", " 1-1"]
)
def test_text_that_is_no_cursor_is_refused_by_name(text: str) -> None:
    with pytest.raises(ArgumentError, match=r"^after must be the id of an event"):
        read_cursor("after", text)


def test_every_list_of_a_filter_must_match_and_an_empty_one_matches_all() -> None:
    event = an_event(tags=("eu", "vip"))
    assert EventFilter().lets(event)
    matching: dict[str, Any] = {
        "events": (EventType.DIED, EventType.MISSED),
        "queues": ("slow",),
        "kinds": ("pdf", "mail"),
        "tags": ("us", "vip"),
    }
    assert EventFilter(**matching).lets(event)
    other: dict[str, Any] = {"events": (EventType.SUCCEEDED,), "queues": ("fast",), "kinds": ("pdf",), "tags": ("us",)}
    for name, words in other.items():
        assert not EventFilter(**matching | {name: words}).lets(event)


def test_a_webhook_never_sends_the_end_of_a_delivery() -> None:
    """An unreachable receiver would create one delivery after the other."""
    hook = Webhook(name="ops", url="https://ops.example")
    assert hook.is_sent(an_event())
    assert hook.is_sent(an_event(type="schedule.missed", kind=None))
    for kind in (DELIVERY, "perdure.alert"):
        assert not hook.is_sent(an_event(kind=kind))
