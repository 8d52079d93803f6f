"""A park leaves a handler whatever it catches, and several become one."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from perdure.domain.flows.flow import Awaits
from perdure.domain.jobs.outcome import Parked
from perdure.flows.park import AWAITED_LIMIT, LOOK_AROUND_EVERY, Park, merged, parked_in

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


def test_of_two_things_both_are_waited_for() -> None:
    both = merged([SLEEP, EVENT, FAMILY])
    assert both == Parked("waiting for an event", HOUR, event="paid", also=(Awaits(family="load"),))
    assert merged([FAMILY, EVENT]).awaits == (Awaits(family="load"), Awaits(event="paid"))


def test_what_was_merged_can_be_merged_again() -> None:
    both = merged([EVENT, FAMILY])
    assert merged([both, both]) == both
    assert merged([both, Parked("waiting for an event", event="sent")]).awaits == (*both.awaits, Awaits(event="sent"))


def test_the_same_thing_is_waited_for_once() -> None:
    assert merged([EVENT, EVENT]) == EVENT


def test_what_is_beyond_the_most_that_can_be_awaited_is_looked_for_again_and_again() -> None:
    wishes = [Parked("waiting for an event", event=f"e{number}") for number in range(AWAITED_LIMIT + 1)]
    assert merged(wishes[:-1]).after is None
    assert merged(wishes).after == LOOK_AROUND_EVERY
    assert merged(wishes).awaits == merged(wishes[:-1]).awaits


def test_a_group_of_parks_is_a_park_and_one_with_an_error_is_not() -> None:
    nested = BaseExceptionGroup("inner", [Park(EVENT)])
    parks = BaseExceptionGroup("outer", [Park(SLEEP), nested, asyncio.CancelledError()])
    assert parked_in(parks) == merged([SLEEP, EVENT])
    assert parked_in(BaseExceptionGroup("mixed", [Park(SLEEP), ValueError()])) is None
    assert parked_in(BaseExceptionGroup("cancelled", [asyncio.CancelledError()])) is None
    assert parked_in(Park(SLEEP)) == SLEEP
    assert parked_in(ValueError()) is None
