"""What an error of PostgreSQL means for the caller.

Unavailable: retry later, the outcome is unknown. Refused: the cause must be fixed first. A message never
carries the password.
"""

from __future__ import annotations

from typing import Final

import psycopg
from psycopg import errors

from perdure.engines.postgres.database.arrays import UnstorableTextError
from perdure.errors import (
    ArgumentError,
    PerdureError,
    SchemaError,
    StoreError,
    StoreRefused,
    StoreUnavailable,
)
from perdure.policy.secrets.passwords import strike

ROLLED_BACK: Final = (errors.DeadlockDetected, errors.SerializationFailure)

_ADVICE: Final[dict[str, tuple[type[StoreError], str]]] = {
    "25006": (StoreRefused, "the server is read-only (a standby?): point perdure at the primary"),
    "53100": (StoreRefused, "the server's disk is full: make room"),
    "42501": (StoreRefused, "the database user lacks rights: grant them, or run `perdure migrate` as the owner"),
    "3D000": (StoreRefused, "the database does not exist: create it"),
    "53300": (StoreUnavailable, "the server has no connection to spare: raise max_connections or use a pooler"),
    "42P01": (SchemaError, "tables are missing: run `perdure migrate`"),
    "42703": (SchemaError, "columns are missing: run `perdure migrate`"),
    "3F000": (SchemaError, "the schema is missing: run `perdure migrate`"),
}
_ADVICE_BY_CLASS: Final[dict[str, tuple[type[StoreError], str]]] = {
    "08": (StoreUnavailable, "the connection failed"),
    "28": (StoreRefused, "the server does not let this user in: check user, password and pg_hba.conf"),
    "40": (StoreUnavailable, "the transaction was rolled back"),
    "53": (StoreUnavailable, "the server is short of resources"),
    "55": (StoreUnavailable, "another session holds a conflicting lock, or the server cannot do this now"),
    "57": (StoreUnavailable, "the server ended the connection or the statement"),
    "58": (StoreRefused, "the server has trouble with its disk"),
}
_STATEMENT_POOLING: Final = "statement pooling mode"
_REFUSALS: Final = (  # a failed login carries no code, only words
    "password authentication failed",
    "no pg_hba.conf entry",
    "does not exist",
    "no password supplied",
    "permission denied",
    "unsupported startup parameter",  # of a pooler, which does not pass on all options of a URL
)


def translate(error: Exception, secret: str | None = None) -> PerdureError:
    """Our error for one of the driver's; `secret` is struck from the message."""
    said = _first_line(error, secret)
    if isinstance(error, UnstorableTextError):
        return ArgumentError("text", said)
    if not isinstance(error, psycopg.Error):
        return StoreUnavailable(f"PostgreSQL cannot be reached: {said}")
    code = error.sqlstate
    if code is None:
        return _without_code(error, said)
    return _by_code(code, said)


def blame(error: Exception) -> PerdureError | None:
    """Our error for one of any driver on a caller's connection, if the schema, a right or a job caused it.

    None: perdure did not cause it, and it stays as it is.
    """
    code = getattr(error, "sqlstate", None)
    meant = _by_code(code, _first_line(error, None)) if isinstance(code, str) else None
    return meant if isinstance(meant, (ArgumentError, SchemaError, StoreRefused)) else None


def _by_code(code: str, said: str) -> PerdureError:
    if _STATEMENT_POOLING in said:
        return StoreRefused(f"the pooler allows no transactions: use pool_mode transaction or session ({said})")
    if code[:2] in {"22", "23"}:
        return ArgumentError("job", f"holds a value that PostgreSQL refuses: {said}")
    kind, advice = _ADVICE.get(code) or _ADVICE_BY_CLASS.get(code[:2]) or (StoreError, "PostgreSQL failed")
    return kind(f"{advice} ({said})")


def _without_code(error: psycopg.Error, said: str) -> PerdureError:
    if isinstance(error, psycopg.DataError):
        return ArgumentError("job", f"holds a value that PostgreSQL refuses: {said}")
    if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        if any(words in said for words in _REFUSALS):
            return StoreRefused(f"PostgreSQL refuses the connection: {said}")
        return StoreUnavailable(f"PostgreSQL cannot be reached: {said}")
    return StoreError(f"PostgreSQL failed: {said}")


def _first_line(error: Exception, secret: str | None) -> str:
    return strike(" ".join(str(error).split()), secret) or type(error).__name__
