"""Claims jobs whenever there is capacity and work.

Wake-ups make it fast and polling makes it reliable: a wake-up only brings the next poll forward. The poll interval is
read before each wait (C3). The loop never ends by itself; it retries through database outages (C4).
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from msgspec import Struct

from perdure.domain.jobs.ids import WorkerId
from perdure.domain.jobs.job import Claim
from perdure.errors import StoreError
from perdure.events import Emitter
from perdure.lifecycle.outage import Outage
from perdure.lifecycle.process.watchdog import StoreCall
from perdure.policy.outage_backoff import DEFAULT_OUTAGE, OutageLimits
from perdure.storage.claims import ClaimStore
from perdure.worker.claiming.ageing import Ageing
from perdure.worker.claiming.slots import Slots

_FEW_CLAIMS: Final = 10


class FetchOwner(Struct, frozen=True, kw_only=True, eq=False):
    """What a fetcher reports to its owner, and asks of it."""

    start: Callable[[list[Claim]], None]  # these jobs were claimed
    give_back: Callable[[list[Claim]], None]  # these too, under a worker id that is now lost
    has_room: Callable[[], bool] = lambda: True
    poll: Callable[[], float | None]  # seconds to wait without a wake-up; None: no limit


class Fetcher:
    """Fills free slots from the store."""

    def __init__(
        self,
        store: ClaimStore,
        slots: Slots,
        emitter: Emitter,
        owner: FetchOwner,
        *,
        ageing: Ageing | None = None,
        outage: OutageLimits = DEFAULT_OUTAGE,
    ) -> None:
        self._store = store
        self._slots = slots
        self._poll = owner.poll
        self._start = owner.start
        self._give_back = owner.give_back
        self._has_room = owner.has_room
        self._ageing = ageing
        self._outage = Outage("claim", emitter, outage)
        self._look = asyncio.Event()
        self._wants_room = False
        self._stopping = False
        self._no_claim = asyncio.Event()  # none is under way
        self._no_claim.set()
        self.worker_id: WorkerId | None = None
        self.is_in_doubt = False  # a claim is under way, or has ended without an answer: it may have taken jobs
        self.answered = 0  # claims so far; they come one after the other
        self.call = StoreCall("claim")

    def wake(self) -> None:
        """Look for work now."""
        self._look.set()

    def freed(self) -> None:
        """A slot may be free; cheap enough to call for every job."""
        if self._wants_room:
            self._look.set()

    def stop(self) -> None:
        """Claim nothing more."""
        self._stopping = True
        self._look.set()

    async def drain(self) -> None:
        """Wait until the current claim has ended; its jobs are passed on as usual."""
        await self._no_claim.wait()

    async def run(self) -> None:
        """Claim until stopped."""
        while not self._stopping:
            with suppress(StoreError):  # raised when stopping; the outage has reported it
                await self._outage.outlast(self._fill, (StoreError,), stop=lambda: self._stopping)
            if not self._stopping:
                await self._rest()

    async def _fill(self) -> None:
        """Claim until there is no room, or the queues that have room are empty."""
        self._look.clear()
        self._slots.look_again()
        while not self._stopping and (worker_id := self.worker_id) is not None and self._has_room():
            wanted = self._slots.wanted()
            if not wanted:
                return
            self._no_claim.clear()
            try:
                with self.call:
                    parts = await self._ageing.divide(wanted) if self._ageing else wanted
                    self.is_in_doubt = True
                    claims = await self._store.claim(worker_id, parts)
                    self.is_in_doubt = False
                    self.answered += 1
            finally:
                self._no_claim.set()
            if worker_id != self.worker_id:  # lost meanwhile: no heartbeat covers these any more
                self._give_back(claims)
                return
            if claims:
                self._start(claims)
            if len(claims) <= _FEW_CLAIMS:
                await asyncio.sleep(0)  # there is little to do: let them begin before we go on
            # If other workers took jobs of an aged priority meanwhile, the queue need not be empty.
            divided = {part.queue for part in parts if part.level is not None}
            whole = [want for want in wanted if want.queue not in divided]
            empty = self._slots.note_taken(whole, Counter(claim.queue for claim in claims))
            if self._ageing:
                self._ageing.note_empty(empty)

    async def _rest(self) -> None:
        """Wait for a wake-up, for a free slot if all are taken, or for the next poll if polling is on."""
        self._wants_room = self._slots.is_limited() or not self._has_room()
        poll = self._poll()
        spread = random.uniform(0.8, 1.2)  # noqa: S311 - spreads load, hides nothing
        with suppress(TimeoutError):
            async with asyncio.timeout(None if poll is None else poll * spread):  # sooner awake than by `wait_for`
                await self._look.wait()
        self._wants_room = False
