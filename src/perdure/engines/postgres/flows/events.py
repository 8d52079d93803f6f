"""Events: emitted once, stored for ever, and awaited by any number of jobs.

An event's name is locked, for the rest of the transaction, by each emitter and by each job that parks for it. So
one of the two comes first, and the other sees what it did: no job misses an event.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from hashlib import blake2b

from msgspec.structs import replace

from perdure.clock import Clock
from perdure.domain.flows.approval import approvals_before
from perdure.domain.flows.flow import Awaits, Emission
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import Reason
from perdure.domain.operate.audit import By, Note
from perdure.engines.postgres.claims.returned_jobs import ReturnedJobs
from perdure.engines.postgres.database.arrays import number_array, storable, text_array
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.encoding import storable_text
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.wire import Asks, Params, Wire
from perdure.engines.postgres.flows.settling import Settling
from perdure.engines.postgres.operate.commands.audit import Audit


class EventPart:
    """Emits events, and reads which were emitted."""

    def __init__(
        self, naming: Naming, pool: Pool, clock: Clock | None, settling: Settling, returns: ReturnedJobs
    ) -> None:
        self._statements = naming.statements("flows/events.sql")
        self._naming = naming
        self._pool = pool
        self._clock = clock
        self._settling = settling
        self._returns = returns
        self._audit = Audit(naming, clock)

    async def emit(self, event: str, payload: str | None, by: By, note: Note | None = None) -> Emission:
        """Emit an event and wake the jobs waiting for it, in one transaction."""
        emission = await self._pool.transaction(partial(self._emit, event, payload, by, note))
        self._returns.expected = True
        return emission

    async def emitted(self, event: str) -> Emission | None:
        """An emitted event; None: it was not emitted."""
        rows = await self._pool.rows(self._statements["emitted"], {"name": event})
        return Emission(event, rows[0][0], rows[0][1], is_first=False) if rows else None

    async def asking(self, limit: int, before: JobId | None = None) -> list[JobId]:
        """Jobs that wait for an answer; several questions of one job are next to each other."""
        first, behind = approvals_before(before)
        rows = await self._pool.rows(self._statements["asking"], {"first": first, "behind": behind, "limit": limit})
        return list(dict.fromkeys(JobId(job_id) for job_id, _ in rows))

    async def came(self, wire: Asks, events: Collection[str]) -> set[str]:
        """Lock these events for the rest of the transaction; those that were emitted come back."""
        if not events:
            return set()
        locks = sorted({self._lock_of(event) for event in events})
        await wire.fetch(self._statements["lock_events"], {"locks": number_array(locks)})
        rows = await wire.fetch(self._statements["known"], {"names": text_array(list(events))})
        return {name for (name,) in rows}

    async def _emit(self, event: str, payload: str | None, by: By, note: Note | None, wire: Wire) -> Emission:
        params: Params = {
            "name": storable_text("event", event),
            "payload": None if payload is None else storable_text("payload", payload),
            "actor": storable(by.actor),
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
        if is_first and note is not None:
            await self._audit.write(wire, by, replace(note, jobs=woken))
        return Emission(event, kept, at, is_first, woken)

    def _lock_of(self, event: str) -> int:
        """A number for the event of this perdure; two events that share one only wait for each other."""
        whose = f"{self._naming.schema}\0{self._naming.prefix}\0{event}"
        return int.from_bytes(blake2b(whose.encode(errors="replace"), digest_size=8).digest(), signed=True)
