"""Takes the fence down in this process, to see whether the crash tests notice.

Either the acknowledgements do not look at the token, or tokens are what a counter says and nothing else, so that they
come again when the database goes back in time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from perdure.engines.postgres.database.naming import Naming
from perdure.engines.sqlite.claims import claims
from perdure.engines.sqlite.database.database import Database

Fences = Mapping[str, Mapping[str, str]]

# What is taken out, and what is put in its place.
SQLITE_FENCES: Final[Fences] = {"claims/acknowledgements.sql": {" AND lease.token = row.value ->> 1": ""}}
POSTGRES_FENCES: Final[Fences] = {"claims/acknowledgements.sql": {" AND l.token = i.token": ""}}


_CHANCE: Final[Fences] = {
    "claims/claims.sql": {
        " + floor(random() * 1048576)::bigint": "",
        "WHERE s.last_value < t.floor": "WHERE false AND s.last_value < t.floor",
    },
}


def take_out_the_fence() -> None:
    """From now on the stores of this process compare the id alone."""
    _sabotage(Naming, POSTGRES_FENCES)
    _sabotage(Database, SQLITE_FENCES)


def count_tokens() -> None:
    """From now on the tokens of this process are counted: nothing is drawn at random, nothing follows the clock."""
    _sabotage(Naming, _CHANCE)
    assert callable(claims._next_token)
    claims._next_token = lambda last, now: last + 1  # noqa: ARG005 - that is the sabotage


def unfenced(file: str, statements: dict[str, str], fences: Fences) -> dict[str, str]:
    """The statements of a file without their token check; a file that should have one and has not is an error."""
    for fence, instead in fences.get(file, {}).items():
        if not any(fence in sql for sql in statements.values()):
            raise AssertionError(f"{file} has no fence that reads {fence!r}: the sabotage must be written anew")
        statements = {name: sql.replace(fence, instead) for name, sql in statements.items()}
    return statements


def _sabotage(owner: Any, fences: Fences) -> None:
    genuine = owner.statements

    def statements(self: Any, file: str, *rest: Any, **others: Any) -> dict[str, str]:
        return unfenced(file, genuine(self, file, *rest, **others), fences)

    owner.statements = statements
