"""Stored breakers: one row for each, changed only under the writer's lock."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from perdure.domain.gate import BreakerState, BreakerView
from perdure.domain.jobs.states import Reason
from perdure.domain.operate.audit import By
from perdure.engines.shared.database.instants import from_micros
from perdure.engines.shared.operate.audit_details import breaker_set
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.rows import to_document
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.fleet.upkeep import UpkeepPart
from perdure.engines.sqlite.flows.waking import Waker
from perdure.engines.sqlite.intake.insertion import check_text
from perdure.engines.sqlite.operate.commands.audit import Audit
from perdure.policy.limits.breaker import openings_of_breaker

_view: Final = msgspec.json.Decoder(BreakerView)


class BreakerPart:
    """Breakers of the store."""

    def __init__(self, database: Database, upkeep: UpkeepPart) -> None:
        self._database = database
        self._sql = database.statements("gates/gates.sql")
        self._audit = Audit(database)
        self._waker = Waker(database, upkeep, Reason.BREAKER_OPEN)

    async def report_breakers(
        self, names: Collection[str], decide: Callable[[datetime, Mapping[str, BreakerView]], Sequence[BreakerView]]
    ) -> list[BreakerView]:
        """Let `decide` say how these breakers change, and write that."""

        def work(transaction: Transaction) -> list[BreakerView]:
            changed = list(decide(from_micros(transaction.now), self.load(transaction, names)))
            self.keep(transaction, changed)
            return changed

        return await self._database.write(work)

    async def breakers(self) -> list[BreakerView]:
        """All breakers that a job has ever reached, by name."""
        rows = await self._database.read(lambda transaction: transaction.run(self._sql["breakers"]))
        return [_view.decode(view) for (view,) in rows]

    async def set_breaker(self, breaker: BreakerView, by: By) -> None:
        """Put a breaker into a state by hand; if it is closed, its jobs check again at once."""
        check_text("name", breaker.name)

        def work(transaction: Transaction) -> None:
            before = self.load(transaction, [breaker.name]).get(breaker.name)
            self.keep(transaction, [breaker])
            self._audit.write(transaction, by, breaker_set(before, breaker))

        await self._database.write(work)
        if breaker.state is BreakerState.CLOSED:
            await self._waker.wake_held(openings_of_breaker(breaker.name))

    def load(self, transaction: Transaction, names: Collection[str]) -> dict[str, BreakerView]:
        """Those of these breakers that a job has reached before."""
        if not names:
            return {}
        rows = transaction.run(self._sql["breakers_named"], {"names": to_document(list(names))})
        return {view.name: view for view in (_view.decode(stored) for (stored,) in rows)}

    def keep(self, transaction: Transaction, breakers: Iterable[BreakerView]) -> None:
        """Write the current state of breakers."""
        if rows := [(view.name, msgspec.json.encode(view).decode()) for view in breakers]:
            transaction.change(self._sql["keep_breakers"], {"rows": to_document(rows)})
