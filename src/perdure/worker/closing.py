"""❀ When and how the attempts of a closing worker end (C1, G9).

    0                       the worker is told to stop: it claims nothing more; handlers see `ctx.closing`; attempts
                            that wait for a thread or a process go back at once
    stop_timeout - grace    running attempts are told to stop: tasks are cancelled, threads interrupted, processes
                            notified. `Worker.hurry` does this at once
    stop_timeout            attempts that still run are abandoned. Their jobs go back like all others: at no cost,
                            with their last checkpoint. A process is killed, which may take half a second

The rest depends on the database: the ends of all attempts are recorded, and the worker unregisters. Running ticks of
loops have the same stop timeout, and one more second if it is over by then. So a stop takes 20 s by default if handlers
ignore it, two or three more if ticks ignore it too, and no longer than they need if they do not. A stop timeout shorter
than the grace shortens the grace, but never to less than a moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from typing import Final

from perdure.domain.jobs.ids import JobId, WorkerId
from perdure.domain.operate.audit import Audited
from perdure.errors import StillRunning, StoreError
from perdure.events import Emitter, RecordsLeft, TicksLeft
from perdure.lifecycle.loops.crew import Loops
from perdure.policy.decide import give_back
from perdure.storage.port import Store
from perdure.worker.attempt.running import Stop
from perdure.worker.execution.executor import Executor
from perdure.worker.gates.loan_keeper import LoanKeeper
from perdure.worker.gates.reports import GateReports
from perdure.worker.parts import WorkerParts
from perdure.worker.recording.freed_keys import FreedKeys
from perdure.worker.recording.statistics import StatisticsWriter
from perdure.worker.settings import WorkerSettings

_SHORTEST_STEP_SECONDS: Final = 1.0
_ORPHANS_PER_CALL: Final = 500
_KILLED_WITHIN_SECONDS: Final = 1.0


class Closing:
    """Ends the attempts of a closing worker."""

    def __init__(self, executor: Executor, settings: WorkerSettings, is_hurried: Callable[[], bool]) -> None:
        self._executor = executor
        self._grace = settings.grace.total_seconds()
        self._stop_timeout = settings.stop_timeout.total_seconds()
        self._is_hurried = is_hurried

    async def run(self) -> None:
        """End every attempt."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._stop_timeout
        self._executor.announce_closing()
        await _wait_until(lambda: self._is_hurried() or not self._executor.running, self._stop_timeout - self._grace)
        for running in list(self._executor.running):
            self._executor.stop(running, Stop.CLOSING)
        await _wait_until(self._is_over, min(self._grace, max(deadline - loop.time(), _SHORTEST_STEP_SECONDS)))
        self._executor.give_up_rest()
        await _wait_until(self._is_over, _KILLED_WITHIN_SECONDS)

    def _is_over(self) -> bool:
        return all(running.given_up for running in self._executor.running)


async def record_all(name: str, parts: WorkerParts, deadline: float) -> None:
    """Wait until then, by the event loop's clock, for the database to store all records."""
    quarantine, gatekeeper, acknowledger = (
        parts.attempts.quarantine,
        parts.attempts.gatekeeper,
        parts.attempts.acknowledger,
    )
    with suppress(TimeoutError):  # a claim that is cut off would leave leases that no worker knows of
        async with asyncio.timeout_at(deadline):
            await parts.fetcher.drain()
            await quarantine.drain()
            await gatekeeper.drain()
    await quarantine.close()
    await gatekeeper.close()
    try:
        async with asyncio.timeout_at(deadline):
            await acknowledger.drain()
    except TimeoutError:
        acknowledger.give_up()
        parts.around.emitter.emit(RecordsLeft(name, acknowledger.backlog))


async def give_back_unknown(
    store: Store, worker_id: WorkerId, deadline: float, audit: Collection[Audited] = frozenset()
) -> None:
    """Give back, at no cost, leases that a retired worker does not know of.

    A program that ends cancels all its tasks: the claim may be cut off before its answer comes.
    """
    with suppress(TimeoutError, StoreError):  # what is left is rescued
        async with asyncio.timeout_at(max(deadline, asyncio.get_running_loop().time() + _SHORTEST_STEP_SECONDS)):
            after: JobId | None = None
            while page := await store.orphans(_ORPHANS_PER_CALL, after):
                after = page[-1].claim.job_id
                unknown = [give_back(orphan.claim) for orphan in page if orphan.worker_id == worker_id]
                if unknown:
                    await store.acknowledge(unknown, audit)
                    store.ring({move.claim.queue for move in unknown})


async def drain_reports(reports: Iterable[GateReports | FreedKeys], deadline: float) -> None:
    """Wait until then for reports to gates; a job that is not woken checks again by itself."""
    for each in reports:
        with suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                await each.drain()
        await each.close()


async def write_statistics(writer: StatisticsWriter, deadline: float) -> None:
    """Write the counts of the last seconds; if that fails they are lost."""
    with suppress(TimeoutError, StoreError):
        async with asyncio.timeout_at(max(deadline, asyncio.get_running_loop().time() + _SHORTEST_STEP_SECONDS)):
            await writer.tick()


async def return_loans(keeper: LoanKeeper, deadline: float) -> None:
    """Return all loans; if that fails they are recalled, because the worker is gone."""
    with suppress(TimeoutError, StoreError):
        async with asyncio.timeout_at(max(deadline, asyncio.get_running_loop().time() + _SHORTEST_STEP_SECONDS)):
            await keeper.give_back_all()


async def end_loops(name: str, loops: Loops, emitter: Emitter, deadline: float) -> None:
    """Wait until then for running ticks, and return those that have not ended; they always have a short time."""
    try:
        await loops.wait_for_completion(max(deadline - asyncio.get_running_loop().time(), _SHORTEST_STEP_SECONDS))
    except StillRunning as error:
        emitter.emit(TicksLeft(name, error.names))


async def _wait_until(condition: Callable[[], bool], seconds: float) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while not condition() and loop.time() < deadline:  # noqa: ASYNC110 - closing is rare
        await asyncio.sleep(0.01)
