"""A park leaves a handler whatever it catches, and several become one."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from perdure.domain.outcome import Parked
from perdure.flows.park import LOOK_ROUND, Park, merged, parked_in

HOUR = timedelta(hours=1)
SLEEP = Parked("sleeping", HOUR)
EVENT = Parked("waiting for an event", event="paid")
FAMILY = Parked("waiting for children", 2 * HOUR, family="load")


def test_a_park_is_no_exception_that_a_handler_would_catch() -> None:
    assert not isinstance(Park(SLEEP), Exception)


def test_what_waits_alone_waits_as_it_is() -> None:
    assert merged([EVENT]) == EVENT


def test_of_two_times_the_first_counts() -> None:
    assert merged([Parked("sleeping", 2 * HOUR), SLEEP]).after == HOUR


def test_an_event_beside_a_time_is_waited_for_until_then() -> None:
    assert merged([SLEEP, EVENT]) == Parked("waiting for an event", HOUR, event="paid")


def test_of_two_things_the_first_is_waited_for_and_the_other_looked_for_again_and_again() -> None:
    assert merged([EVENT, FAMILY]) == Parked("waiting for an event", LOOK_ROUND, event="paid")


def test_a_group_of_parks_is_a_park_and_one_with_an_error_is_not() -> None:
    nested = BaseExceptionGroup("inner", [Park(EVENT)])
    parks = BaseExceptionGroup("outer", [Park(SLEEP), nested, asyncio.CancelledError()])
    assert parked_in(parks) == merged([SLEEP, EVENT])
    assert parked_in(BaseExceptionGroup("mixed", [Park(SLEEP), ValueError()])) is None
    assert parked_in(BaseExceptionGroup("cancelled", [asyncio.CancelledError()])) is None
    assert parked_in(Park(SLEEP)) == SLEEP
    assert parked_in(ValueError()) is None
