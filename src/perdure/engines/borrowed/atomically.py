"""All or nothing, on a connection whose transaction the caller ends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeVar

from perdure.engines.borrowed.connection import Borrowed

T = TypeVar("T")

_BEFORE: Final = "SAVEPOINT perdure_enqueue"
_KEEP: Final = "RELEASE SAVEPOINT perdure_enqueue"
_UNDO: Final = ("ROLLBACK TO SAVEPOINT perdure_enqueue", _KEEP)


async def atomically(borrowed: Borrowed, begin: str, work: Callable[[], Awaitable[T]]) -> T:
    """Do work inside a savepoint of the caller's transaction; where there is none, in a transaction of its own.

    If the work fails, its writes are undone, and the caller's transaction continues as if the work had never begun.
    """
    inside = await borrowed.is_in_transaction()
    first, last, undo = (_BEFORE, _KEEP, _UNDO) if inside else (begin, "COMMIT", ("ROLLBACK",))
    await borrowed.run(first)
    try:
        done = await work()
        await borrowed.run(last)
    except BaseException:
        with suppress(Exception):  # the connection may be gone, or the database have rolled back by itself
            for statement in undo:
                await borrowed.run(statement)
        raise
    return done
