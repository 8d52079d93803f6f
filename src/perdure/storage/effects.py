"""How a handler writes to the same database as its acknowledgement."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from perdure.domain.jobs.transition import Transition
from perdure.storage.records import (
    ALONE,
    Acknowledged,
    Alongside,
)


class Effects(Protocol):
    """A transaction in which a handler writes, and with which its acknowledgement is committed (G5).

    It ends once: by `commit_with` or by `undo`, whichever comes first, from whatever thread.
    """

    @property
    def connection(self) -> Any:
        """The driver's connection, for the handler."""

    def block(self) -> AbstractAsyncContextManager[Any]:
        """One use of the connection by the handler; if it raises, what was written in it is undone, and no more."""

    async def commit_with(self, transition: Transition, alongside: Alongside = ALONE) -> Acknowledged:
        """Write what became of the claim, and commit it together with everything that the handler has written.

        The steps and log lines of `alongside` are committed with it, or not at all.

        If the claim was lost, everything is rolled back and the answer says stale. If this raises StoreUnavailable, it
        is not known whether the commit has happened: `acknowledge` the attempt as failed, which is stale if it has.
        Any other error means that it has not.
        """

    async def undo(self, *, forced: bool = False) -> None:
        """Roll back and let go of the connection; nothing happens if it is over. Raises nothing.

        `forced`: from outside, while the handler still uses the connection. A statement that is under way is
        interrupted, nothing more can be written through it, and it is let go of once the handler has ended.
        """


class EffectStore(Protocol):
    """How a handler writes to the same database as its acknowledgement."""

    async def begin_effects(self, *, blocking: bool = False) -> Effects:
        """Begin a transaction on a connection of its own.

        `blocking`: for a handler in a thread, which may call this without an event loop: nothing in it, nor in the
        effects it returns, waits for one.
        """
