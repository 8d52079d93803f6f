"""Events and their listeners."""

from __future__ import annotations

import logging

import pytest

from perdure.errors import ArgumentError
from perdure.events import Emitter, Event, JobStarted, WorkerLoud, WorkerQuiet
from perdure.events.jobs import PER_ATTEMPT

QUIET, LOUD = WorkerQuiet("w", "test", 0), WorkerLoud("w", "test")


def test_a_listener_gets_the_types_that_it_names() -> None:
    emitter = Emitter()
    heard: list[Event] = []
    emitter.subscribe(heard.append, WorkerLoud)
    emitter.emit(QUIET)
    emitter.emit(LOUD)
    assert heard == [LOUD]


def test_a_listener_that_fails_is_logged_and_the_others_are_called(caplog: pytest.LogCaptureFixture) -> None:
    emitter = Emitter()
    heard: list[Event] = []

    def fail(_: Event) -> None:
        raise ValueError("broken")

    emitter.subscribe(fail)
    emitter.subscribe(heard.append)
    with caplog.at_level(logging.ERROR, "perdure"):
        emitter.emit(LOUD)
    assert heard == [LOUD]
    assert "failed on WorkerLoud" in caplog.text


def test_a_listener_may_unsubscribe_while_it_is_called() -> None:
    emitter = Emitter()
    heard: list[str] = []

    def once(event: Event) -> None:
        heard.append("once")
        stop()

    stop = emitter.subscribe(once)
    emitter.subscribe(lambda _: heard.append("always"))
    emitter.emit(LOUD)
    emitter.emit(LOUD)
    assert heard == ["once", "always", "always"]


def test_events_of_single_attempts_are_made_only_for_those_who_name_them() -> None:
    emitter = Emitter()
    heard: list[Event] = []
    emitter.subscribe(heard.append)
    follows = [emitter.follows_attempts]
    stop = emitter.subscribe(lambda _: None, JobStarted)
    follows.append(emitter.follows_attempts)
    stop()
    assert [*follows, emitter.follows_attempts] == [False, True, False]
    assert JobStarted in PER_ATTEMPT
    with pytest.raises(ArgumentError, match="types must be classes of events"):
        emitter.subscribe(heard.append, str)  # type: ignore[arg-type]
