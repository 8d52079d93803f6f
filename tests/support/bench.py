"""An executor with nothing around it but a ledger: what a worker's parts do, without a database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import timedelta
from typing import Any, cast

from tests.support.builders import views

from perdure import App, WorkerSettings
from perdure.clock import SystemClock
from perdure.domain.jobs.ids import JobId, new_job_id
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.transition import Transition
from perdure.domain.operate.audit import Audited
from perdure.events import Emitter, Event
from perdure.storage.port import Store
from perdure.storage.records import Acknowledged
from perdure.worker.claiming.slots import Slots
from perdure.worker.settings import Queue
from perdure.worker.surroundings import Surroundings
from perdure.worker.wiring.attempts import Owner, wire_attempts


def a_claim(kind: str, **changes: Any) -> Claim:
    """A claim on a job without arguments."""
    now = SystemClock().now()
    return views.a_claim(**{"job_id": new_job_id(), "kind": kind, "since": now, "claimed_at": now} | changes)


class Ledger:
    """A store that takes acknowledgements alone; `refuse` may raise for any of them."""

    def __init__(self, refuse: Callable[[Sequence[Transition]], None] = lambda _: None) -> None:
        self._refuse = refuse
        self.written: dict[JobId, Transition] = {}

    async def acknowledge(self, transitions: Sequence[Transition], _: Collection[Audited] = ()) -> Acknowledged:
        self._refuse(transitions)
        self.written |= {move.claim.job_id: move for move in transitions}
        return Acknowledged(len(transitions))

    def ring_ended(self, job_ids: Iterable[JobId]) -> None:
        """No caller awaits these jobs."""

    @property
    def store(self) -> Store:
        """The ledger, for who wants a whole store."""
        return cast("Store", self)


class Bench:
    """An executor, its slots and its acknowledger, which is patient but does not wait."""

    def __init__(self, app: App, ledger: Ledger, **settings: Any) -> None:
        emitter = Emitter()
        self.events: list[Event] = []
        emitter.subscribe(self.events.append)
        patient: dict[str, Any] = {"ack_batch": 10, "outage_backoff": timedelta(microseconds=1)}
        parts = wire_attempts(
            Surroundings(
                store=ledger.store,
                kinds=app.kinds,
                settings=WorkerSettings(**(patient | settings)),
                emitter=emitter,
                clock=SystemClock(),
            ),
            Slots((Queue("default"),), 10, 10),
            Owner(on_free=lambda: None),
        )
        self.slots, self.acknowledger, self.executor = parts.slots, parts.acknowledger, parts.executor
