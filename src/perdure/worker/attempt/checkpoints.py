"""Writes checkpoints to the store: how far an attempt has come, for the next attempt.

Once a checkpoint is being written, it is written to the end, even if its attempt is told to stop meanwhile: finished
work must not be repeated for lack of a record. While the database is unreachable the handler waits, because further
work could not be recorded either. A lost claim stops the attempt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, Protocol

from perdure.domain.jobs.job import Claim
from perdure.errors import ConflictError, PayloadError
from perdure.events import Emitter
from perdure.kinds.encoding import encode
from perdure.lifecycle.bridges.from_thread import result_of
from perdure.lifecycle.outage import Outage
from perdure.policy.outage_backoff import DEFAULT_OUTAGE, OutageLimits
from perdure.storage.claims import ClaimStore

CURSOR_LIMIT_BYTES: Final = 64 * 1024


class Checkpoints(Protocol):
    """Stores the checkpoints of an attempt; False: its claim is lost, and nothing was written."""

    async def keep(self, claim: Claim, cursor: str | None) -> bool:
        """Durable when it returns."""

    def keep_from_thread(self, claim: Claim, cursor: str | None) -> bool:
        """The same, for a handler that blocks."""


class StoredCheckpoints:
    """The checkpoints of all attempts of one worker, written on the worker's event loop."""

    def __init__(
        self,
        store: ClaimStore,
        emitter: Emitter,
        on_lost: Callable[[Claim], None],
        outage: OutageLimits = DEFAULT_OUTAGE,
    ) -> None:
        self._store = store
        self._emitter = emitter
        self._on_lost = on_lost
        self._limits = outage
        self._loop = asyncio.get_running_loop()

    async def keep(self, claim: Claim, cursor: str | None) -> bool:
        """Durable when it returns."""
        outage = Outage("checkpoint", self._emitter, self._limits)
        kept = await outage.outlast(lambda: self._to_the_end(claim, cursor))
        if not kept:
            self._on_lost(claim)
        return kept

    def keep_from_thread(self, claim: Claim, cursor: str | None) -> bool:
        """The same, for a handler that blocks."""
        keeping = self.keep(claim, cursor)
        try:
            return result_of(asyncio.run_coroutine_threadsafe(keeping, self._loop))
        except RuntimeError:
            if not self._loop.is_closed():
                raise
            keeping.close()
            raise ConflictError("the worker of this attempt has closed: its job went back to the queue") from None

    async def _to_the_end(self, claim: Claim, cursor: str | None) -> bool:
        writing = self._loop.create_task(_written(self._store, claim, cursor))
        try:
            return await asyncio.shield(writing)
        except asyncio.CancelledError:
            await asyncio.wait({writing})
            if not writing.cancelled():
                writing.exception()  # retrieved: a request to stop comes first
            raise


async def _written(store: ClaimStore, claim: Claim, cursor: str | None) -> bool:
    return await store.checkpoint(claim, cursor)


def cursor_text(cursor: Any) -> str | None:
    """The JSON of a cursor; None removes the checkpoint."""
    if cursor is None:
        return None
    try:
        text = encode(cursor)
    except (TypeError, ValueError, NotImplementedError, OverflowError, RecursionError) as error:
        raise PayloadError("cursor", f"cannot be stored as JSON: {error}") from error
    if (size := len(text.encode())) > CURSOR_LIMIT_BYTES:
        raise PayloadError(
            "cursor",
            f"has {size} bytes as JSON, {CURSOR_LIMIT_BYTES} are allowed; "
            "store the position here, and the data elsewhere",
        )
    return text
