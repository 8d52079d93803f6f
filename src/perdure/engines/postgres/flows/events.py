"""Events: emitted once, kept for good, and awaited by any number of jobs.

An event's name is locked, for the rest of the transaction, by whoever emits it and by whoever goes to sleep for it. So
one of the two comes first, and the other sees what it did: nobody sleeps through an event.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from hashlib import blake2b

from perdure.clock import Clock
from perdure.domain.flows.flow import Awaits, Emission
from perdure.domain.jobs.states import Reason
from perdure.engines.postgres.database.arrays import number_array, text_array
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.encoding import storable_text
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.wire import Asks, Params, Wire
from perdure.engines.postgres.flows.settling import Settling


class EventPart:
    """Emits events, and tells which were."""

    def __init__(self, naming: Naming, pool: Pool, clock: Clock | None, settling: Settling) -> None:
        self._statements = naming.statements("flows/events.sql")
        self._naming = naming
        self._pool = pool
        self._clock = clock
        self._settling = settling

    async def emit(self, event: str, payload: str | None, actor: str) -> Emission:
        """Make an event known and wake who waits for it, in one transaction."""
        return await self._pool.transaction(partial(self._emit, event, payload, actor))

    async def emitted(self, event: str) -> Emission | None:
        """An event that was emitted; None: nobody has."""
        rows = await self._pool.rows(self._statements["emitted"], {"name": event})
        return Emission(event, rows[0][0], rows[0][1], is_first=False) if rows else None

    async def came(self, wire: Asks, events: Collection[str]) -> set[str]:
        """Lock these events for the rest of the transaction; those that were emitted come back."""
        if not events:
            return set()
        locks = sorted({self._lock_of(event) for event in events})
        await wire.fetch(self._statements["lock_events"], {"locks": number_array(locks)})
        rows = await wire.fetch(self._statements["known"], {"names": text_array(list(events))})
        return {name for (name,) in rows}

    async def _emit(self, event: str, payload: str | None, actor: str, wire: Wire) -> Emission:
        params: Params = {
            "name": storable_text("event", event),
            "payload": None if payload is None else storable_text("payload", payload),
            "actor": actor,
            "awaits": str(Awaits(event=event)),
            "now": self._clock.now() if self._clock else None,
        }
        await wire.fetch(self._statements["lock_events"], {"locks": number_array([self._lock_of(event)])})
        [[kept, at, is_first]] = await wire.fetch(self._statements["emit"], params)
        sleepers = await wire.fetch(self._statements["sleepers"], params)
        woken = 0
        if sleepers:
            pairs = [(job_id, str(Awaits(event=event))) for (job_id,) in sleepers]
            woken = await self._settling.wake(wire, pairs, Reason.EVENT_CAME)
        return Emission(event, kept, at, is_first, woken)

    def _lock_of(self, event: str) -> int:
        """A number for the event of this perdure; two events that share one only wait for each other."""
        whose = f"{self._naming.schema}\0{self._naming.prefix}\0{event}"
        return int.from_bytes(blake2b(whose.encode(errors="replace"), digest_size=8).digest(), signed=True)
