"""Leadership: a lease with a term, which its holder trusts for less time than all others do.

A candidate asks the store for the lease, by the database's clock, and renews it after a third of its time. The others
wait until the lease has run out. The leader counts by its own monotonic clock, which cannot be set back or forward,
from the moment *before* it asked; and it stops a margin of a fifth early. So a process that was paused, or whose answer
took long, finds at its next check that it no longer leads, before another process can lead. While the database cannot
be reached it keeps trying, and steps down by itself when the margin is reached.

The term rises whenever the leader changes. A leader that closes gives the lease back, and the next candidate gets it at
once.

No safety depends on this. Work continues between one check of `is_leading` and the next; the database's clock may be
set forward, and two processes lead until the first has asked again; a sleeping machine may not count its sleep. So
leadership only avoids duplicate work. Tokens and unique keys guard what must not happen twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Final

from perdure.clock import Clock
from perdure.domain.duration import Duration
from perdure.domain.leadership import Lead
from perdure.errors import StoreError
from perdure.events import Emitter, LeadLost, LeadTaken
from perdure.lifecycle.loops.intervals import read_interval
from perdure.lifecycle.loops.loop import Loop
from perdure.policy.outage_backoff import DEFAULT_OUTAGE, OutageLimits
from perdure.storage.fleet.leaders import LeaderStore

DEFAULT_LEASE: Final = timedelta(seconds=15)
_RENEWALS_PER_LEASE: Final = 3  # in one lease
_LEASE_SHARE_UNUSED_IN: Final = 5  # a leader stops early, by one part in this many of its lease
_SHORTEST_WAIT: Final = timedelta(milliseconds=50)
_STEP_DOWN_TIMEOUT_SECONDS: Final = 2.0  # seconds to give the lead back; after that it runs out by itself


class Leadership(Loop[Lead | None]):
    """One candidate for the lead in `subject`: asks, renews, and steps down when it is stopped.

    `holder` names this process, and must be unique. `on_taken` is called whenever it begins to lead.
    """

    def __init__(
        self,
        store: LeaderStore,
        subject: str,
        holder: str,
        emitter: Emitter,
        clock: Clock,
        lease: Duration = DEFAULT_LEASE,
    ) -> None:
        super().__init__(emitter)
        self.subject = subject
        self.holder = holder
        self.name = f"leadership of {subject}"
        self.term = 0
        self.on_taken: Callable[[], None] | None = None
        self._store = store
        self._clock = clock
        self._lease = read_interval(f"lease of {subject}", lease)
        self.interval = self.limit = self._lease / _RENEWALS_PER_LEASE
        self.use_outage(DEFAULT_OUTAGE)
        self._until = 0.0  # on the monotonic clock
        self._leads = False
        self._steps_down = False
        self._asking = asyncio.Lock()

    @property
    def is_leading(self) -> bool:
        """Whether this process leads now; False from a margin before its lease runs out."""
        return self._leads and self._clock.monotonic() < self._until

    async def tick(self) -> Lead | None:
        """Ask for the lead, or renew it; None: it was given up for good."""
        async with self._asking:
            if self._steps_down:
                return None
            self._notice_end()
            asked = self._clock.monotonic()
            try:
                lead = await self._store.lead(self.subject, self.holder, self._lease)
            except BaseException:
                self._notice_end()
                raise
            if lead.is_ours:
                self._lead_from(asked, lead)
            else:
                self._lose(f"{lead.holder} leads in term {lead.term}")
            return lead

    def next_wait(self, did: Lead | None) -> timedelta:
        """After a third of the lease, or as soon as another process's lease runs out."""
        if did is None or did.is_ours:
            return self.interval
        return min(self.interval, max(did.remaining, _SHORTEST_WAIT))

    def use_outage(self, limits: OutageLimits) -> None:
        """Apply these limits, but never wait longer than until the next renewal is due."""
        super().use_outage(OutageLimits(limits.errors, min(limits.backoff, self.interval)))

    async def step_down(self) -> None:
        """Give the lead up for good; the next candidate gets it at once."""
        self._steps_down = True
        self._lose("stepped down")
        with suppress(StoreError, TimeoutError):  # it runs out by itself
            async with asyncio.timeout(_STEP_DOWN_TIMEOUT_SECONDS), self._asking:
                await self._store.step_down(self.subject, self.holder)

    async def run(self) -> None:
        """Be a candidate until stopped, then step down."""
        try:
            await super().run()
        finally:
            await self.step_down()

    def _lead_from(self, asked: float, lead: Lead) -> None:
        if self._steps_down:  # while the answer was on its way
            return
        if lead.term != self.term:
            self._lose("another process has led in between")
        self.term = lead.term
        self._until = asked + (min(lead.remaining, self._lease) - self._lease / _LEASE_SHARE_UNUSED_IN).total_seconds()
        if self._clock.monotonic() >= self._until:
            self._lose("the answer took too long")
        elif not self._leads:
            self._leads = True
            self.emitter.emit(LeadTaken(self.subject, self.holder, self.term))
            if self.on_taken is not None:
                self.on_taken()

    def _notice_end(self) -> None:
        if self._clock.monotonic() >= self._until:
            self._lose("the lease was not renewed in time")

    def _lose(self, because: str) -> None:
        if self._leads:
            self._leads = False
            self.emitter.emit(LeadLost(self.subject, self.holder, self.term, because))
