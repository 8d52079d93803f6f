"""Stored breakers: one row for each, changed only while its gate is locked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import json

from perdure.clock import Clock
from perdure.domain.gate import BreakerState, BreakerView
from perdure.domain.jobs.states import Reason
from perdure.domain.operate.audit import By
from perdure.engines.postgres.database.arrays import text_array
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.encoding import storable_text
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.rows import Row
from perdure.engines.postgres.database.wire import Statement, Wire
from perdure.engines.postgres.flows.waking import Waker
from perdure.engines.postgres.gates.locks import GateLocks
from perdure.engines.postgres.operate.commands.audit import Audit
from perdure.engines.shared.operate.audit_details import breaker_set
from perdure.policy.limits.breaker import openings_of_breaker

_VIEW: Final = json.Decoder(BreakerView)


class BreakerPart:
    """Stores breakers."""

    def __init__(self, naming: Naming, pool: Pool, clock: Clock | None, locks: GateLocks, waking: Waker) -> None:
        self._statements = naming.statements("gates/breakers.sql")
        self._pool = pool
        self._clock = clock
        self._locks = locks
        self._waking = waking
        self._audit = Audit(naming, clock)

    async def report_breakers(
        self, names: Collection[str], decide: Callable[[datetime, Mapping[str, BreakerView]], Sequence[BreakerView]]
    ) -> list[BreakerView]:
        """Lock these breakers, let `decide` change them, and write the changes."""

        async def work(wire: Wire, _: object, found: list[Row]) -> list[BreakerView]:
            [[now]] = found
            changed = list(decide(now, await self.load(wire, names)))
            self.keep(wire, changed)
            return changed

        return await self._locks.locked(locks_of(names), self._time(), work)

    async def breakers(self) -> list[BreakerView]:
        """All breakers that a job has ever reached, by name."""
        return [_VIEW.decode(view) for (view,) in await self._pool.rows(self._statements["breakers"])]

    async def set_breaker(self, breaker: BreakerView, by: By) -> None:
        """Put a breaker into a state by hand; if it is closed, its jobs check again at once."""
        storable_text("name", breaker.name)

        async def work(wire: Wire, *_: object) -> None:
            before = (await self.load(wire, [breaker.name])).get(breaker.name)
            self.keep(wire, [breaker])
            wire.defer(*self._audit.statement(by, breaker_set(before, breaker)))

        await self._locks.locked(locks_of([breaker.name]), self._time(), work)
        if breaker.state is BreakerState.CLOSED:
            await self._waking.wake_held(Reason.BREAKER_OPEN, openings_of_breaker(breaker.name))

    async def load(self, wire: Wire, names: Collection[str]) -> dict[str, BreakerView]:
        """Those of these breakers that a job has reached before."""
        if not names:
            return {}
        rows = await wire.fetch(self._statements["breakers_named"], {"names": text_array(list(names))})
        return {view.name: view for view in (_VIEW.decode(stored) for (stored,) in rows)}

    def keep(self, wire: Wire, breakers: Sequence[BreakerView]) -> None:
        """Write the current state of locked breakers."""
        if breakers:
            params = {
                "names": text_array([view.name for view in breakers]),
                "views": text_array([json.encode(view).decode() for view in breakers]),
            }
            wire.defer(self._statements["keep"], params)

    def _time(self) -> Statement:
        return self._statements["time"], {"now": self._now()}

    def _now(self) -> datetime | None:
        return self._clock.now() if self._clock else None


def locks_of(names: Iterable[str]) -> dict[str, timedelta]:
    """The gates that are locked for breakers."""
    return {f"breaker:{name}": timedelta(0) for name in names}
