"""A filter that is formatted and parsed is the same filter, whatever it holds."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.builders.jobs import HOSTILE

from perdure.domain.jobs.states import JobState
from perdure.domain.operate.condition import Condition
from perdure.errors import ArgumentError
from perdure.operate.search import format_search, parse_search
from perdure.storage.records import JobFilter

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
LETTERS = "ab1Z .:=~<>!-_/\"\\'\t\n…é漢🦩{}%()[],;"
TEXT = st.one_of(st.sampled_from(HOSTILE), st.text(LETTERS, min_size=1, max_size=12))
STEP = TEXT.map(lambda text: text[:50])
MOMENT = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - see timezones


def conditions() -> st.SearchStrategy[Condition]:
    document = st.builds(
        Condition,
        st.sampled_from(["args", "meta", "result"]),
        st.lists(STEP, max_size=4),
        st.sampled_from(["=", "!=", "~", ">", "<", "exists"]),
        TEXT,
    )
    tags = st.builds(lambda op, value: Condition("tags", (), op, value), st.sampled_from(["=", "!=", "~"]), TEXT)
    error = st.builds(lambda value: Condition("error", ("type",), "=", value), TEXT)
    return st.one_of(document, tags, error)


@st.composite
def filters(draw: Any) -> JobFilter:
    def maybe(strategy: st.SearchStrategy[Any]) -> Any:
        return draw(st.one_of(st.none(), strategy))

    def span(of: str) -> dict[str, Any]:
        first, last = sorted(draw(st.lists(MOMENT, min_size=2, max_size=2, unique=True)))
        return {f"{of}_after": maybe(st.just(first)), f"{of}_before": maybe(st.just(last))}

    return JobFilter(
        ids=maybe(st.lists(st.uuids().map(str), min_size=1, max_size=3)),
        states=maybe(st.sets(st.sampled_from(list(JobState)), min_size=1)),
        marked=draw(st.one_of(st.none(), st.just(True))),
        mark=maybe(st.sampled_from(["read", "to do", "a:b"])),
        where=draw(st.lists(conditions(), max_size=3)),
        **{name: maybe(TEXT) for name in ("kind", "queue", "tag", "error", "ref", "fingerprint")},
        **span("created"),
        **span("finished"),
    )


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)  # on a busy machine
@given(which=filters())
def test_a_filter_that_is_formatted_and_parsed_is_the_same_filter(which: JobFilter) -> None:
    assert parse_search(format_search(which), now=NOW) == which


@given(text=st.one_of(st.text(LETTERS, max_size=40), st.lists(TEXT, max_size=4).map(" kind:".join)))
def test_any_text_is_a_filter_or_a_clear_error(text: str) -> None:
    try:
        which = parse_search(text, now=NOW)
    except ArgumentError as error:
        which, field = JobFilter(), error.field
    else:
        field = "search"
    assert field == "search"
    assert parse_search(format_search(which), now=NOW) == which
