"""Pauses: jobs of a queue, of a kind or with certain arguments that must not run for now.

A worker parks such a job with a note that begins with `pause` and the pause's id. That is how it is found again.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from datetime import datetime

from perdure.clock import Clock
from perdure.domain.gate import Pause
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import Reason
from perdure.domain.operate.audit import By
from perdure.engines.postgres.database.arrays import storable, text_array
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.encoding import storable_text
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.rows import Row
from perdure.engines.postgres.database.wire import Params, Wire
from perdure.engines.postgres.flows.waking import Waker
from perdure.engines.postgres.operate.commands.audit import Audit
from perdure.engines.shared.operate.audit_details import paused, resumed
from perdure.errors import StoreRefused
from perdure.policy.limits.pausing import openings_of_pauses


class PausePart:
    """Stores pauses, and releases the jobs that they held."""

    def __init__(self, naming: Naming, pool: Pool, clock: Clock | None, waking: Waker) -> None:
        self._statements = naming.statements("gates/pauses.sql")
        self._pool = pool
        self._clock = clock
        self._waking = waking
        self._audit = Audit(naming, clock)

    async def pause(self, pause: Pause, by: By) -> None:
        """Store a pause; an existing one with this id does not change."""
        for field in ("id", "queue", "kind", "args"):
            if (text := getattr(pause, field)) is not None:
                storable_text(field, text)
        params: Params = {
            "id": pause.id,
            "queue": pause.queue,
            "kind": pause.kind,
            "args": pause.args,
            "until": pause.until,
            "why": None if pause.why is None else storable(pause.why),
            "actor": storable(pause.actor),
            "at": pause.at,
        }

        async def work(wire: Wire) -> None:
            if await wire.fetch(self._statements["pause"], params):
                await self._audit.write(wire, by, paused(pause))

        await self._pool.transaction(work)

    async def resume(self, ids: Collection[str], by: By) -> int:
        """Delete these pauses, so that no worker holds jobs for them any more; then release the held ones."""
        if not ids:
            return 0

        async def work(wire: Wire) -> None:
            for row in await wire.fetch(self._statements["resume"], {"ids": text_array(list(ids))}):
                await self._audit.write(wire, by, resumed(_pause(row)))

        await self._pool.transaction(work)
        return await self._waking.wake_held(Reason.ON_HOLD, openings_of_pauses(ids))

    async def pauses(self) -> list[Pause]:
        """The current pauses, oldest first; those whose time is over end here."""
        rows = await self._pool.rows(self._statements["pauses"], {"now": self._now()})
        if any(row[-1] for row in rows):
            with suppress(StoreRefused):  # a database that takes no writes: the next that can write ends them
                over = await self._pool.rows(self._statements["expire"], {"now": self._now()})
                await self._waking.wake_held(Reason.ON_HOLD, openings_of_pauses(pause_id for (pause_id,) in over))
        return [_pause(row[:-1]) for row in rows if not row[-1]]

    async def wake_unpaused(self, limit: int) -> int:
        """Release jobs that were parked for a pause after it was deleted; returns how many were found."""
        rows = await self._pool.rows(self._statements["unpaused"], {"limit": limit})
        await self._waking.wake([JobId(job_id) for (job_id,) in rows], Reason.ON_HOLD)
        return len(rows)

    def _now(self) -> datetime | None:
        return self._clock.now() if self._clock else None


def _pause(row: Row) -> Pause:
    return Pause(**dict(zip(Pause.__struct_fields__, row, strict=True)))
