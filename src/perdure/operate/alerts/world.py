"""The data for rules: each view is read once per evaluation, and shared by all rules."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Final, TypeVar

from perdure.clock import Clock
from perdure.domain.alerts.rule import ALERT_QUEUE
from perdure.domain.jobs.states import JobState
from perdure.domain.operate.statistics import Group
from perdure.domain.schedule import Fire
from perdure.operate.alerts.memory import Died, Memory
from perdure.operate.attention.attention import examine_database
from perdure.operate.attention.fleet import lost_workers, queues_without_progress, tripped_breakers
from perdure.operate.attention.need import Need
from perdure.operate.attention.times import late_schedules
from perdure.operate.views.statistics import Grouping, read_statistics
from perdure.storage.operate.alerts import BudgetLimits
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Tally

Found = TypeVar("Found")
JOBS_COUNTED: Final = 100_000
"""The most ready jobs of a queue that are counted for a rule about depth."""
_READY: Final = JobFilter(states=frozenset({JobState.READY}))
_JOBS_PER_FRONT: Final = 1
_NEEDS: Final[dict[str, Callable[[Store, datetime], Awaitable[Sequence[Need]]]]] = {
    "breakers": tripped_breakers,
    "workers": lost_workers,
    "schedules": late_schedules,
    "queues": queues_without_progress,
}


class World:
    """The views of one evaluation. Deliveries of alerts are left out everywhere: an alert about alerts would loop."""

    def __init__(self, store: Store, clock: Clock, now: datetime, memory: Memory) -> None:
        self.store = store
        self.now = now
        self.memory = memory
        self.failures: list[Died] = []
        self.missed: list[Fire] = []
        self._clock = clock
        self._read: dict[object, object] = {}

    async def ready(self, cap: int) -> list[Tally]:
        """Ready jobs by queue, at most `cap` counted in each."""

        async def read() -> list[Tally]:
            tallies = await self.store.count(_READY, ("queue",), min(cap, JOBS_COUNTED))
            return [tally for tally in tallies if tally.queue not in {None, ALERT_QUEUE}]

        return await self._once(("ready", cap), read)

    async def oldest(self) -> dict[str, datetime]:
        """Since when the oldest ready job of each queue waits."""

        async def read() -> dict[str, datetime]:
            queues = [tally.queue for tally in await self.ready(_JOBS_PER_FRONT) if tally.queue is not None]
            found: dict[str, datetime] = {}
            for front in await self.store.fronts(sorted(queues), _JOBS_PER_FRONT) if queues else ():
                found[front.queue] = min(front.since, found.get(front.queue, front.since))
            return found

        return await self._once("oldest", read)

    async def attempts(self, within: timedelta, by: Grouping) -> tuple[Group, ...]:
        """Recent outcomes of attempts, by queue or kind."""

        async def read() -> tuple[Group, ...]:
            found = await read_statistics(self.store, within, by=by, points=False)
            return tuple(group for group in found.groups if group.queue != ALERT_QUEUE)

        return await self._once(("attempts", within, by), read)

    async def needs(self, about: str) -> Sequence[Need]:
        """The desk's needs about breakers, workers, schedules or queues."""

        async def read() -> Sequence[Need]:
            return await _NEEDS[about](self.store, self.now)

        return await self._once(("needs", about), read)

    async def database(self) -> Sequence[Need]:
        """The problems that `perdure doctor` finds in the database."""

        async def read() -> Sequence[Need]:
            return await examine_database(self.store, self._clock)

        return await self._once("database", read)

    async def budgets(self) -> list[BudgetLimits]:
        """The budgets that workers have declared."""
        return await self._once("budgets", self.store.budget_limits)

    async def spent(self, name: str, window: timedelta) -> float:
        """What was spent under the name of a budget in this window."""

        async def read() -> float:
            return await self.store.spent(name, self.now - window)

        return await self._once(("spent", name, window), read)

    async def _once(self, key: object, read: Callable[[], Awaitable[Found]]) -> Found:
        if key not in self._read:
            self._read[key] = await read()
        return self._read[key]  # type: ignore[return-value] # cached under this key
