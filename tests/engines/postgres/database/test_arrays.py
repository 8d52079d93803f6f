"""Arrays as text: whatever goes in comes out, and what PostgreSQL cannot store is refused."""

from __future__ import annotations

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.builders.jobs import HOSTILE

from perdure.engines.postgres.database.arrays import UnstorableTextError, number_array, storable, text_array

TRICKY = (
    *HOSTILE, "", '"', '""', '","', "\\", '\\"', '\\\\","', ",", "{", "}", "{}", "NULL", "null", "a,b", "a\nb", "\x01",
)  # fmt: skip
texts = st.text(
    alphabet=st.characters(exclude_characters="\0", categories=None, exclude_categories=["Cs"]), max_size=20
)
elements = st.one_of(texts, st.sampled_from(TRICKY), st.none())


def read_back(connection: psycopg.Connection, literal: str) -> list[str | None]:
    row = connection.execute("SELECT %s::text[]", (literal,)).fetchone()
    assert row is not None
    found: list[str | None] = row[0]
    return found


@pytest.fixture(scope="module")
def connection(postgres_url: str) -> psycopg.Connection:
    return psycopg.connect(postgres_url, autocommit=True)


@pytest.fixture(scope="module", autouse=True)
def _closed(connection: psycopg.Connection) -> object:
    yield
    connection.close()


def test_hostile_texts_come_back_unchanged(connection: psycopg.Connection) -> None:
    values = [*TRICKY, None, *reversed(TRICKY)]
    assert read_back(connection, text_array(TRICKY)) == list(TRICKY)
    assert read_back(connection, text_array(values)) == values
    for value in TRICKY:
        assert read_back(connection, text_array([value])) == [value]


@given(st.lists(elements, max_size=8))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_list_comes_back_unchanged(connection: psycopg.Connection, values: list[str | None]) -> None:
    assert read_back(connection, text_array(values)) == values


@pytest.mark.parametrize("values", [["a\0b"], ["fine", "\0"], ["\0", None], ["\ud800"], ["fine", None, "x\udfff"]])
def test_what_postgres_cannot_store_is_refused(values: list[str | None]) -> None:
    with pytest.raises(UnstorableTextError):
        text_array(values)


def test_numbers_and_nulls() -> None:
    assert number_array([1, None, -2.5, 2**62]) == "{1,NULL,-2.5,4611686018427387904}"
    assert number_array([]) == "{}"


@given(st.text(max_size=30))
def test_storable_changes_only_what_cannot_be_stored(text: str) -> None:
    kept = storable(text)
    text_array([kept])
    if "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text):
        assert kept == text


def test_storable_keeps_what_stands_around() -> None:
    assert storable("before\0after") == "before\ufffdafter"
    assert storable("before\udc80after").startswith("before")
    assert storable("before\udc80after").endswith("after")
