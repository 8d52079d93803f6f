"""The session settings that our statements need, and whether a session is ours to set.

A direct connection is a session of its own: settings are made once, when it begins. A pooler in transaction mode (such
as PgBouncer with `pool_mode = transaction`) lends a server's session for one transaction only. What is set, prepared or
listened to there is lost for us, and stays behind for other clients of the pool. Sessions of that kind are *shared*:
each transaction makes its settings for itself, with `set_config(…, is_local => true)`, and they end with it.

How sessions are recognised. The server tells each client the process id of its session when the connection is made. A
pooler tells a number of its own, because it does not know yet which session will serve the client. So where this number
differs from `pg_backend_pid()`, a pooler (or another proxy that knows the protocol) stands in between. The statement
that makes the settings asks for this in its own WHERE clause, and sets nothing if the numbers differ: a direct
connection pays nothing for the check, and a pooler's session is never touched by it.

What stands in between may still keep one session for each client, as a pooler in session mode does. To tell, two
connections ask in turn which session serves them. If each always has one that the other never has, sessions are not
shared. A pooler in transaction mode gives itself away by the second question, unless others use it at the same time;
then it does so by one of the next ones. If there is no answer in time, sessions count as shared, which is always safe.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any, Final

import psycopg
from msgspec import Struct

Connection = psycopg.AsyncConnection[tuple[Any, ...]]

BEGIN_SHARED: Final = "BEGIN ISOLATION LEVEL READ COMMITTED"
ANSWER_TIMEOUT_SECONDS: Final = 5.0  # a session pooler that has no second session to lend leaves us waiting
_TURNS: Final = "abaabbabbaababbaabbabaab"  # irregular: a pooler that takes its sessions in turn shows as well
_EACH: Final = {  # sequential and bitmap scans and hash or merge joins: see `connections`
    "TimeZone": "UTC",
    "search_path": "pg_catalog",
    "jit": "off",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}
_ISOLATION: Final = {"default_transaction_isolation": "read committed"}
_GENERIC: Final = {"plan_cache_mode": "force_generic_plan"}
_DURABLE: Final = (
    "CASE WHEN current_setting('synchronous_commit') IN ('on', 'remote_apply')"
    " THEN current_setting('synchronous_commit') ELSE 'on' END"
)
COMMIT_DURABLY: Final = f"SELECT set_config('synchronous_commit', {_DURABLE}, true)"
"""For a transaction of another's session that must be durable once it is committed."""


class Pooler(StrEnum):
    """What the URL says of a pooler between us and the server."""

    AUTO = "auto"  # find out
    SESSION = "session"  # each connection has a session of its own
    TRANSACTION = "transaction"  # sessions are shared


class Sessions(StrEnum):
    """What sessions a server's connections lead to."""

    UNKNOWN = "unknown"
    DIRECT = "direct"
    POOLED = "pooled"  # a pooler stands in between, and keeps one session for each connection
    SHARED = "shared"


class Terms(Struct, frozen=True):
    """What a session is for: `generic_plans`, which do not depend on parameters; `durable` commits, or hasty ones."""

    generic_plans: bool = False
    durable: bool = True

    def for_session(self, only_in: int | None) -> str:
        """The statement that sets up a session; it does nothing, and answers no row, in another one than `only_in`."""
        where = "" if only_in is None else f" WHERE pg_catalog.pg_backend_pid() = {only_in}"
        return self._settings(_ISOLATION, "false") + where

    def for_transaction(self) -> str:
        """The statement that sets up one transaction, and leaves nothing behind."""
        return self._settings({}, "true")

    def _settings(self, more: dict[str, str], is_local: str) -> str:
        settings = _EACH | more | (_GENERIC if self.generic_plans else {})
        values = {name: f"'{value}'" for name, value in settings.items()}
        values["synchronous_commit"] = _DURABLE if self.durable else "'off'"
        return "SELECT " + ", ".join(f"set_config('{name}', {value}, {is_local})" for name, value in values.items())


async def are_shared(first: Connection, connect: Callable[[], Awaitable[Connection]]) -> bool:
    """Tell whether a pooler serves connections from sessions that they share; nothing is changed in any of them."""
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT_SECONDS):
            second = await connect()
            try:
                return await _meet(first, second)
            finally:
                await second.close()
    except TimeoutError:
        return True


async def _meet(first: Connection, second: Connection) -> bool:
    """Whether one of two connections changes its session, or ever has one that the other has had."""
    seen = dict[str, int]()
    for turn in _TURNS:
        session = await _session_of(first if turn == "a" else second)
        if seen.setdefault(turn, session) != session or len(set(seen.values())) < len(seen):
            return True
    return False


async def _session_of(connection: Connection) -> int:
    [[session]] = await (await connection.execute("SELECT pg_catalog.pg_backend_pid()")).fetchall()
    return int(session)
