"""Attempts in isolated processes: hard limits of time and memory, and crashes that affect only the attempt.

Each attempt gets a fresh process. Starting one costs a few hundred milliseconds, most of them imports; so while jobs
keep arriving, one spare process for the same module is started in advance. A spare that is not needed is ended.

A process that dies is a failed attempt, retried by the job's policy, with the cause in its record. It is not a crash of
the worker, which still runs and knows what happened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

import msgspec

from perdure.domain.duration import format_duration
from perdure.domain.jobs.outcome import Failed, Failure, Outcome
from perdure.errors import ProcessDied
from perdure.kinds.declared import address_of
from perdure.lifecycle.process.exits import how_it_ended
from perdure.policy.failures import lineage, type_name
from perdure.worker.attempt.checkpoints import Checkpoints
from perdure.worker.attempt.running import Running
from perdure.worker.attempt.spending import Spending
from perdure.worker.isolation.parent import IsolatedProcess
from perdure.worker.isolation.relay import Relay
from perdure.worker.isolation.wire import Notice, Order, Report, refusal

_START_TIMEOUT_SECONDS: Final = 120.0
_SPARE_KEPT_SECONDS: Final = 60.0


class ProcessCrew:
    """At most `size` attempts at once, each in a process that has `grace` seconds to end after its work is done."""

    def __init__(
        self,
        size: int,
        grace: float,
        checkpoints: Checkpoints | None = None,
        spending: Spending | None = None,
        relay: Relay | None = None,
    ) -> None:
        self._seats = asyncio.Semaphore(size)
        self._grace = grace
        self._checkpoints = checkpoints
        self._spending = spending
        self._relay = relay
        self._closing = False
        self._at_work: set[IsolatedProcess] = set()
        self._spares: dict[str, IsolatedProcess] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.waiting = 0

    async def run(self, running: Running) -> Outcome | None:
        """Run one attempt; None: it was stopped because its claim is lost."""
        self.waiting += 1
        try:
            await self._seats.acquire()
        finally:
            self.waiting -= 1
        try:
            return await self._run(running)
        except ProcessDied as error:
            return _failed(error)
        except OSError as error:
            return _failed(ProcessDied(f"its process could not be started: {error}"))
        finally:
            self._seats.release()

    def announce_closing(self) -> None:
        """Tell every handler that the worker is stopping; start no more spares."""
        self._closing = True
        for process in self._at_work:
            process.send(Notice(closing=True))

    async def close(self) -> None:
        """End every process."""
        self._closing = True
        processes = [*self._at_work, *self._spares.values()]
        for process in processes:
            process.kill()
        self._spares.clear()
        await asyncio.gather(*(process.ended() for process in processes), *self._tasks, return_exceptions=True)

    async def _run(self, running: Running) -> Outcome | None:
        address = address_of(running.kind)
        process, greeting = await self._take(address.module)
        self._at_work.add(process)
        try:
            if greeting is None:
                return await self._death_of(process, "it was ready")
            if not greeting.is_ready:
                return _read(greeting, process)
            process.order(self._order(running))
            running.interrupt = lambda: process.send(Notice(stopping=running.stop or ""))
            running.force = process.kill
            running.pid = process.pid
            self._prepare_spare(address.module)
            return await self._until_over(running, process)
        except BaseException:
            process.kill()
            raise
        finally:
            running.force = None
            self._in_background(self._see_off(process))

    def _order(self, running: Running) -> Order:
        address, relay = address_of(running.kind), self._relay
        if relay is None:
            return Order(address, running.claim, self._closing)
        return Order(
            address,
            running.claim,
            self._closing,
            keep_lines=relay.keep_lines,
            age=relay.age_of(running),
            trace=relay.trace_of(running),
        )

    async def _until_over(self, running: Running, process: IsolatedProcess) -> Outcome | None:
        limit = running.timeout
        try:
            async with asyncio.timeout(None if limit is None else limit.total_seconds()):
                report = await process.report()
                while report is not None and report.is_request:
                    process.send(await self._keep(running, report))
                    report = await process.report()
        except TimeoutError:
            await process.kill_with_stacks()
            return running.outcome_when_stopped() if running.stop else _timed_out(running, process)
        return await self._judge(running, process, report)

    async def _keep(self, running: Running, report: Report) -> Notice:
        if self._checkpoints is None or self._spending is None or self._relay is None:
            return Notice(trouble="what is to be kept needs a worker")
        try:
            if report.is_checkpoint:
                return Notice(kept=await self._checkpoints.keep(running.claim, report.cursor()))
            if report.is_expense:
                return Notice(kept=await self._spending.spend(running.claim, report.expense()))
            return await self._relay.answer(running, report)
        except Exception as error:  # noqa: BLE001 - the handler must see every error
            return refusal(error)

    async def _judge(self, running: Running, process: IsolatedProcess, report: Report | None) -> Outcome | None:
        if report is not None and not report.is_stopped:
            return _read(report, process)
        if running.stop is not None:
            return running.outcome_when_stopped()
        return await self._death_of(process, "the handler had returned")

    async def _death_of(self, process: IsolatedProcess, before: str) -> Failed:
        code = await process.ended(self._grace)
        death = f"its process (pid {process.pid}) {how_it_ended(code)} before {before}"
        return _failed(ProcessDied(death if code < 0 else f"{death} (os._exit)", process.last_words))

    async def _take(self, module: str) -> tuple[IsolatedProcess, Report | None]:
        """A process that is ready, or one that has failed and says why."""
        spare = self._spares.pop(module, None)
        if spare is not None:
            greeting = await self._greeting(spare)
            if greeting is not None and greeting.is_ready:
                return spare, greeting
            self._in_background(self._see_off(spare))
        fresh = await IsolatedProcess.start(module)
        return fresh, await self._greeting(fresh)

    async def _greeting(self, process: IsolatedProcess) -> Report | None:
        try:
            async with asyncio.timeout(_START_TIMEOUT_SECONDS):
                return await process.report()
        except TimeoutError:
            await process.kill_with_stacks()
            late = f"its process was not ready within {_START_TIMEOUT_SECONDS:.0f} s, and was killed"
            raise ProcessDied(late, process.last_words) from None
        except BaseException:
            process.kill()
            self._in_background(self._see_off(process))
            raise

    def _prepare_spare(self, module: str) -> None:
        if not self._closing and module not in self._spares:
            self._in_background(self._keep_spare(module))

    async def _keep_spare(self, module: str) -> None:
        try:
            spare = await IsolatedProcess.start(module)
        except OSError:  # the next attempt reports it
            return
        if self._closing or module in self._spares:
            spare.kill()
            await self._see_off(spare)
            return
        self._spares[module] = spare
        asyncio.get_running_loop().call_later(_SPARE_KEPT_SECONDS, self._let_go, module, spare)

    def _let_go(self, module: str, spare: IsolatedProcess) -> None:
        if self._spares.get(module) is spare:
            del self._spares[module]
            spare.kill()
            self._in_background(self._see_off(spare))

    async def _see_off(self, process: IsolatedProcess) -> None:
        await process.ended(self._grace)
        self._at_work.discard(process)

    def _in_background(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _read(report: Report, process: IsolatedProcess) -> Outcome:
    try:
        return report.outcome()
    except (msgspec.DecodeError, LookupError) as error:
        raise ProcessDied(f"its process sent an unreadable report: {error}", process.last_words) from error


def _timed_out(running: Running, process: IsolatedProcess) -> Failed:
    limit = format_duration(running.timeout) if running.timeout else ""
    message = f"the attempt exceeded its time limit of {limit}, and its process was killed"
    failure = Failure(type_name(TimeoutError), message, process.last_words)
    return Failed(failure, timed_out=True, kinds=lineage(TimeoutError))


def _failed(error: ProcessDied) -> Failed:
    failure = Failure(type_name(ProcessDied), str(error), error.last_words)
    return Failed(failure, kinds=lineage(ProcessDied))
