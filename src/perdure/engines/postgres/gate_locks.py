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
from perdure.engines.gate_needs import GATES_KEPT
from perdure.engines.postgres.arrays import text_array
from perdure.engines.postgres.connections import Pool
from perdure.engines.postgres.encoding import seconds_text
from perdure.engines.postgres.naming import Naming
from perdure.engines.postgres.wire import Wire

T = TypeVar("T")
Locked = Mapping[str, tuple[timedelta, datetime]]
"""Gates by name: for how long their starts are kept, and until when they are remembered."""

_MOST_KNOWN: Final = 100_000


class GateLocks:
    """Locks gates, and enters those that nobody has met before."""

    def __init__(self, naming: Naming, pool: Pool, clock: Clock | None) -> None:
        self._statements = naming.statements("gates.sql")
        self._pool = pool
        self._clock = clock
        self._known = set[str]()

    async def locked(self, names: set[str], work: Callable[[Wire, Locked], Awaitable[T]]) -> T:
        """Do a piece of work in a transaction, while these gates are locked."""
        return await self._pool.run(partial(self._locked, sorted(names, key=str.encode), work))

    async def renew(self, wire: Wire, spans: Mapping[str, timedelta], until: datetime) -> None:
        """Remember locked gates until then, and keep their starts for at least so long."""
        params = {
            "names": text_array(list(spans)),
            "spans": text_array([seconds_text(span) for span in spans.values()]),
            "until": until,
        }
        await wire.fetch(self._statements["renew"], params)

    async def _locked(self, names: list[str], work: Callable[[Wire, Locked], Awaitable[T]], wire: Wire) -> T:
        while True:
            await self._enter(names, wire)
            try:
                return await wire.transaction(partial(self._lock_and_do, names, work))
            except _ForgottenError:
                self._known.difference_update(names)

    async def _lock_and_do(self, names: list[str], work: Callable[[Wire, Locked], Awaitable[T]], wire: Wire) -> T:
        rows = await wire.fetch(self._statements["lock"], {"names": text_array(names)}) if names else []
        if len(rows) < len(names):
            raise _ForgottenError
        return await work(wire, {name: (span, until) for name, span, until in rows})

    async def _enter(self, names: list[str], wire: Wire) -> None:
        """Make sure that there is a row for each; in a transaction of its own, before any is locked."""
        new = [name for name in names if name not in self._known]
        if not new:
            return
        now = self._clock.now() if self._clock else None
        await wire.fetch(self._statements["enter"], {"names": text_array(new), "kept": GATES_KEPT, "now": now})
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        self._known.update(new)


class _ForgottenError(Exception):
    """A gate was forgotten since it was entered."""
