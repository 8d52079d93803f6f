"""Cursors of lists, and filters that say the same as a search."""

from __future__ import annotations

import base64

import pytest

from perdure.errors import ArgumentError
from perdure.operate.desk import Desk
from perdure.storage.port import Store
from perdure.surfaces.api.filters import Filter, read_cursor, write_cursor
from perdure.surfaces.api.handlers.jobs.jobs import JobsQuery

LISTED = {"list": "jobs", "kind": "mail"}


@pytest.mark.parametrize("place", ["0190-ü/1", 42])
def test_a_cursor_leads_back_to_its_place(place: str | int) -> None:
    cursor = write_cursor(LISTED, place)
    assert cursor is not None
    assert cursor.isascii()
    assert "=" not in cursor
    assert read_cursor(dict(reversed(LISTED.items())), cursor) == str(place)


def test_a_list_without_a_next_page_has_no_cursor() -> None:
    assert write_cursor(LISTED, None) is None
    assert read_cursor(LISTED, None) is None


def test_a_cursor_of_another_filter_is_refused() -> None:
    with pytest.raises(ArgumentError, match="belongs to another list or filter; take it from `next`"):
        read_cursor({**LISTED, "kind": "pdf"}, write_cursor(LISTED, "a"))


@pytest.mark.parametrize(
    "cursor", ["", "é", "a b", "!", "abcde", "_____", base64.urlsafe_b64encode(b"12345678").decode(), "x" * 501]
)
def test_text_that_is_no_cursor_is_refused_by_name(cursor: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        read_cursor(LISTED, cursor)
    assert refused.value.field == "cursor"


def test_pages_of_one_filter_are_one_list_for_every_page_size() -> None:
    small, large = JobsQuery(kind="mail", limit=1), JobsQuery(kind="mail", limit=100, cursor="x")
    assert small.conditions == large.conditions
    assert small.conditions != JobsQuery(kind="pdf", limit=1).conditions


@pytest.mark.parametrize("engine_url", ["sqlite"], indirect=True)
async def test_a_condition_that_the_search_has_too_is_refused_by_name(store: Store) -> None:
    desk = Desk(store, "ada")
    found = await Filter(search="kind:mail state:dead", queue="slow").read(desk)
    assert (found.kind, found.queue) == ("mail", "slow")
    for more in ({"kind": "pdf"}, {"state": ("ready",)}):
        with pytest.raises(ArgumentError, match="is in the search too: give it once"):
            await Filter(search="kind:mail state:dead", **more).read(desk)
