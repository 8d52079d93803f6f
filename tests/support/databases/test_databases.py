"""What a test leaves in the database that it was lent is not there for the next one."""

from __future__ import annotations

import psycopg
import pytest
from tests.support.databases.behind import query, with_option
from tests.support.databases.databases import SCHEMA, PostgresDatabase

NUMBERS = "SELECT nextval('claim_token'), nextval('ready_seq'), nextval('fair_seq')"


def use(database: PostgresDatabase, *statements: str) -> str:
    """Run these while it is lent; its address."""
    with database.lent() as address:
        for statement in statements:
            query(with_option(address, "schema", SCHEMA), statement)
    return address


def test_rows_and_tables_and_numbers_are_taken_back(postgres_database: PostgresDatabase) -> None:
    postgres_database.drop()  # one that was lent often enough is not lent again
    with postgres_database.lent() as address:
        url = with_option(address, "schema", SCHEMA)
        first = query(url, NUMBERS)
        query(url, "INSERT INTO event (name, actor, at) VALUES ('paid', 'ada', now())")
        query(url, "CREATE TABLE note AS SELECT 1")
    with postgres_database.lent() as again:
        assert again == address
        assert query(url, NUMBERS) == first
        assert query(url, "SELECT * FROM event") == []
        assert query(url, "SELECT to_regclass('note')") == [(None,)]


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE job ADD COLUMN novelty text",
        "ALTER TABLE job RENAME COLUMN kind TO sort",
        "ALTER TABLE job ALTER COLUMN meta SET DEFAULT ''",
        "ALTER TABLE job ADD CHECK (priority > 0)",
        "CREATE INDEX ON job (kind)",
        "DROP TABLE parked",
        "TRUNCATE parked",
        "CREATE SCHEMA other",
        "CREATE FUNCTION one() RETURNS int RETURN 1",
        "GRANT SELECT ON job TO public",
        "UPDATE migration SET release = 9",
        "ANALYZE migration",
    ],
)
def test_a_database_that_was_changed_is_lent_to_no_test(postgres_database: PostgresDatabase, change: str) -> None:
    changed = use(postgres_database, change)
    assert use(postgres_database) != changed
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        query(changed, "SELECT 1")


def test_a_session_left_open_does_not_outlive_its_test(postgres_database: PostgresDatabase) -> None:
    with postgres_database.lent() as address:
        left = psycopg.connect(address)
    with pytest.raises(psycopg.OperationalError):
        left.execute("SELECT 1")
    left.close()
