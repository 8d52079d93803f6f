from __future__ import annotations

from perdure.engines.postgres.database.naming import Naming
from perdure.engines.shared.database.placeholders import numbered

FILES = (
    "intake/intake",
    "claims/claims",
    "claims/acknowledgements",
    "fleet/workers",
    "fleet/upkeep",
    "operate/views/insight",
    "operate/commands/commands",
    "database/schema_history",
)


def test_names_become_numbers_and_a_name_used_twice_is_one() -> None:
    sql, names = numbered("SELECT %(a)s::int + %(b)s::int + %(a)s::int, '100%%'")
    assert sql == "SELECT $1::int + $2::int + $1::int, '100%'"
    assert names == ("a", "b")


def test_every_statement_names_its_tables_by_schema_and_prefix() -> None:
    """Several apps share a database: no table may be found by the search path."""
    for file in FILES:
        for name, sql in Naming("s1", "p_").statements(f"{file}.sql").items():
            assert "{" not in sql.replace("'{}'", ""), name
            for table in ("job", "ready", "lease", "parked", "finished", "unique_hold", "worker", "attempt"):
                assert f" FROM {table} " not in sql, name
                assert f" INTO {table} " not in sql, name


def test_every_parameter_of_intake_is_cast_to_text_first() -> None:
    """Any driver can then carry a text for it, whatever the column."""
    for name, sql in Naming("s1").statements("intake/intake.sql").items():
        assert sql.count("%(") == sql.count(")s::text"), name
