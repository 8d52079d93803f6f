"""The locks of gates: one row for each, locked in the order of their names until the transaction ends.

Rows, and not advisory locks, because those share a small table in the server's memory, which a few workers with a
thousand keys each would fill.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Final, TypeVar

from perdure.clock import Clock
from perdure.engines.postgres.database.arrays import text_array
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.encoding import seconds_text
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.rows import Row
from perdure.engines.postgres.database.wire import Statement, Wire
from perdure.engines.shared.gates.needs import GATES_KEPT

T = TypeVar("T")
Work = Callable[[Wire, Mapping[str, timedelta], list[Row]], Awaitable[T]]
"""Receives the gates that are stored with another span than requested, and the rows of the first query."""

_KEYS_REMEMBERED: Final = 100_000


class GateLocks:
    """Locks gates, and inserts new ones."""

    def __init__(self, naming: Naming, pool: Pool, clock: Clock | None) -> None:
        self._statements = naming.statements("gates/gates.sql")
        self._pool = pool
        self._clock = clock
        self._known = set[str]()

    async def locked(self, spans: Mapping[str, timedelta], look: Statement, work: Work[T]) -> T:
        """Run work in a transaction that has locked these gates; `look` is queried in the same round trip.

        The starts under each gate are kept for at least its span.
        """
        names = sorted(spans, key=str.encode)
        return await self._pool.run(partial(self._locked, {name: spans[name] for name in names}, look, work))

    async def _locked(self, spans: Mapping[str, timedelta], look: Statement, work: Work[T], wire: Wire) -> T:
        while True:
            await self._enter(list(spans), wire)
            try:
                return await wire.transaction(partial(self._lock_and_do, spans, look, work))
            except _ForgottenError:
                self._known.difference_update(spans)

    async def _lock_and_do(self, spans: Mapping[str, timedelta], look: Statement, work: Work[T], wire: Wire) -> T:
        params = {**_gates(spans), "now": self._now(), "kept": GATES_KEPT}
        [[_, _, count], *odd], found = await wire.fetch_each((self._statements["lock"], params), look)
        if count < len(spans):
            raise _ForgottenError
        kept = {name: max(span, spans[name]) for name, span, _ in odd}
        if kept:
            wire.defer(self._statements["renew"], {**_gates(kept), "now": self._now(), "kept": GATES_KEPT})
        return await work(wire, kept, found)

    async def _enter(self, names: list[str], wire: Wire) -> None:
        """Make sure that each has a row, in a separate transaction, before any is locked."""
        new = [name for name in names if name not in self._known]
        if not new:
            return
        await wire.fetch(self._statements["enter"], {"names": text_array(new), "kept": GATES_KEPT, "now": self._now()})
        if len(self._known) > _KEYS_REMEMBERED:
            self._known.clear()
        self._known.update(new)

    def _now(self) -> datetime | None:
        return self._clock.now() if self._clock else None


def _gates(spans: Mapping[str, timedelta]) -> dict[str, str]:
    texts = {span: seconds_text(span) for span in set(spans.values())}  # most of them are the same
    return {"names": text_array(list(spans)), "spans": text_array([texts[span] for span in spans.values()])}


class _ForgottenError(Exception):
    """The row of a gate was deleted since it was inserted."""
