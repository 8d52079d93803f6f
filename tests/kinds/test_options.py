"""Options of a job: what cannot be meant is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from perdure import Retry, Unique
from perdure.domain.jobs.ids import new_job_id
from perdure.errors import ArgumentError, PayloadError, SettingsError
from perdure.kinds.options import (
    Options,
    checked_count,
    checked_instant,
    checked_limit,
    checked_name,
    checked_names,
    checked_options,
    checked_priority,
    checked_ref,
    checked_unique,
    refuse_misspelt,
)

EARLY = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1)))


def options(**given: Any) -> Options:
    plain: dict[str, Any] = dict.fromkeys(
        ["queue", "priority", "delay", "run_at", "id", "meta", "unique", "connection", "retry", "timeout"]
    )
    return checked_options(**plain | {"crash_limit": None, "ref": None, "tags": (), "parameters": ("url",)} | given)


def test_nothing_given_means_what_the_kind_says() -> None:
    assert options() == Options()


def test_what_is_given_is_kept_in_the_form_that_is_stored() -> None:
    job_id = new_job_id()
    made = options(
        delay="90s", id=job_id.upper(), tags=["a", "b"], meta={"n": 1}, timeout="5m", retry=Retry(attempts=2)
    )
    assert made.delay == timedelta(seconds=90)
    assert (made.id, made.tags, made.meta) == (job_id, ("a", "b"), '{"n":1}')
    assert made.settings is not None
    assert options(timeout="5m").settings != options().settings


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"delay": "1s", "run_at": datetime(2026, 1, 1, tzinfo=UTC)}, ArgumentError, "run_at and delay are both given"),
        ({"id": "order-7"}, ArgumentError, "id must be a UUID .*; for other keys use Unique"),
        ({"tags": "monthly"}, ArgumentError, 'tags must be a list of names, such as .*"monthly"'),
        ({"tags": 5}, ArgumentError, "tags must be a list of names"),
        ({"tags": ["t"] * 101}, ArgumentError, "tags are 101, 100 are allowed"),
        ({"meta": [1]}, ArgumentError, "meta must give values by name"),
        ({"meta": {"x": object()}}, PayloadError, "meta cannot be stored as JSON"),
        ({"meta": {"x": float("nan")}}, PayloadError, "meta cannot be stored as JSON: NaN"),
        ({"meta": {"x": "y" * 16_384}}, PayloadError, r"meta takes \d+ characters, 16384 are allowed"),
        ({"timeout": 0}, SettingsError, "timeout must be longer than 0"),
        ({"crash_limit": 0}, SettingsError, "crash_limit must be a whole number of at least 1"),
        ({"unique": "url"}, SettingsError, "unique must be a Unique"),
        ({"unique": Unique(by="nope")}, SettingsError, "nope"),
        ({"queue": " "}, ArgumentError, "queue must be 1 to 100 printable characters"),
        ({"queue": "q" * 200}, ArgumentError, "queue must be 1 to 100 printable characters, got 'q+…"),
    ],
)
def test_an_option_that_cannot_be_meant_is_refused(given: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        options(**given)


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (checked_priority, [0, 9], [-1, 10, True, 5.0, "5"]),
        (lambda value: checked_count("n", value), [1, 10**9], [0, -1, True, 1.0, "1", None]),
        (lambda value: checked_name("n", value), ["a", "a" * 100, "ü 漢"], ["", "a\n", "\u202e", 5, "a" * 101]),
        (checked_ref, ["order-7", "a b", "r" * 200], [" a", "a ", str(new_job_id()), "r" * 201]),
        (lambda value: checked_limit("t", value), [timedelta(microseconds=1)], [0, "0s", "soon", True]),
        (lambda value: checked_instant("at", value), [datetime(2026, 1, 1, tzinfo=UTC)], ["now", EARLY]),
        (lambda value: checked_unique(value, ("url",)), [None, Unique(by="url")], [True]),
    ],
    ids=["priority", "count", "name", "ref", "limit", "instant", "unique"],
)
def test_each_check_takes_its_edge_and_refuses_what_is_beyond(
    check: Callable[[Any], Any], good: list[Any], bad: list[Any]
) -> None:
    for value in good:
        check(value)
    for value in bad:
        with pytest.raises(ArgumentError):
            check(value)


def test_a_time_without_a_zone_is_refused_with_how_to_write_it() -> None:
    with pytest.raises(ArgumentError, match=r"run_at needs a time zone, got .*; use datetime\(\.\.\., tzinfo=UTC\)"):
        options(run_at=datetime(2026, 1, 1))  # noqa: DTZ001 - it is refused


def test_one_text_is_no_set_of_names() -> None:
    assert checked_names("queues", ["a", "b", "a"]) == {"a", "b"}
    with pytest.raises(SettingsError, match=r"write queues=\['mail'\]"):
        checked_names("queues", "mail")


def test_a_misspelt_option_is_reported_with_the_nearest_or_with_all() -> None:
    def declare(handler: object, *, name: str, queue: str, timeout: int) -> None: ...

    def send() -> None: ...

    refuse_misspelt(send, {"queue": "mail"}, declare)
    with pytest.raises(SettingsError, match="option timeuot of job send is not known: did you mean timeout"):
        refuse_misspelt(send, {"timeuot": 5}, declare)
    with pytest.raises(SettingsError, match="option colour of job mail is not known: there are name, queue, timeout"):
        refuse_misspelt(send, {"name": "mail", "colour": "red"}, declare)
    with pytest.raises(SettingsError, match="must be declared on a function"):
        refuse_misspelt("mail", {}, declare)
