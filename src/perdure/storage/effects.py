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

    It ends once: by the first call of `commit_with` or `undo`, from any thread.
    """

    @property
    def connection(self) -> Any:
        """The driver's connection, for the handler."""

    def block(self) -> AbstractAsyncContextManager[Any]:
        """One use of the connection by the handler; if it raises, only the writes of this use are rolled back."""

    async def commit_with(self, transition: Transition, alongside: Alongside = ALONE) -> Acknowledged:
        """Write the outcome of the claim, and commit it together with everything that the handler has written.

        The steps and log lines of `alongside` are committed with it, or not at all.

        If the claim was lost, everything is rolled back and the answer is stale. If this raises StoreUnavailable, it is
        unknown whether the commit happened: `acknowledge` the attempt as failed, which is stale if it did. Any other
        error means that it did not.
        """

    async def undo(self, *, forced: bool = False) -> None:
        """Roll back and release the connection; does nothing if it is over. Raises nothing.

        `forced`: from outside, while the handler still uses the connection. A running statement is interrupted, nothing
        more can be written through it, and it is released once the handler has ended.
        """


class EffectStore(Protocol):
    """How a handler writes to the same database as its acknowledgement."""

    async def begin_effects(self, *, blocking: bool = False) -> Effects:
        """Begin a transaction on a connection of its own.

        `blocking`: for a handler in a thread, which may call this without an event loop: neither this nor the returned
        effects wait for one.
        """
