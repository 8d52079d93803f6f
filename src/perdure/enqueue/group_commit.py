"""Lets concurrent enqueues share a commit.

Enqueues in the same turn of the event loop, or while another enqueue is in progress, are stored together in one
transaction: one caller pays one commit, and sixty-four callers pay two. An error that concerns only one job (its unique
key, for example) is raised to its caller only.

A caller that has waited one second for the batch before proceeds without it: the cause may delay that batch
for long, and an engine's lock timeout starts only when it receives the job.

A lost connection leaves a commit in doubt. Every job has its id from the start, so the same batch is stored again, for
as long as `enqueue_patience` lasts: a job is never stored twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from perdure.domain.jobs.job import NewJob, OnConflict, Receipt
from perdure.enqueue.counts import EnqueueCounts
from perdure.errors import PerdureError, StoreLocked, StoreUnavailable
from perdure.storage.port import Store

_FIRST_RETRY_SECONDS = 0.05
_HELD_BACK_SECONDS = 1.0
_LONELY_ENQUEUES = 8  # after so many enqueues alone, waiting for others is tried only now and then


class GroupCommit:
    """The entrance to one store from one event loop."""

    def __init__(self, store: Store, patience: timedelta, counts: EnqueueCounts | None = None) -> None:
        self._store = store
        self._counts = counts or EnqueueCounts()
        self._patience = patience.total_seconds()
        self._waiting: list[tuple[NewJob, asyncio.Future[Receipt]]] = []
        self._busy = False
        self._alone = 0  # consecutive enqueues that no other one joined
        self._task: asyncio.Task[None] | None = None
        self._begun = 0.0  # when the current batch was given to the store
        self._watch: asyncio.TimerHandle | None = None
        self._ahead = set[asyncio.Task[None]]()

    async def put(self, job: NewJob) -> Receipt:
        """Store one job, together with others that arrive at the same time."""
        if self._busy:
            future: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
            self._waiting.append((job, future))
            if self._watch is None:
                self._watch = asyncio.get_running_loop().call_later(_HELD_BACK_SECONDS, self._look_after_waiting)
            return await future
        self._busy = True
        try:
            if self._alone < _LONELY_ENQUEUES or not self._alone % _LONELY_ENQUEUES:
                await asyncio.sleep(0)  # let concurrent callers join
            if not self._waiting:
                self._alone += 1
                self._begun = asyncio.get_running_loop().time()
                return (await self.put_all((job,)))[0]
            self._alone = 0
            future = asyncio.get_running_loop().create_future()
            self._waiting.insert(0, (job, future))
        finally:
            if self._waiting:
                self._task = asyncio.get_running_loop().create_task(self._drain())
            else:
                self._busy = False
        return await future

    async def put_all(self, jobs: Sequence[NewJob]) -> list[Receipt]:
        """Store all these jobs or none; retry while the database cannot be reached."""
        try:
            receipts = await self._store.insert(jobs)
        except StoreLocked:  # nothing was stored, and the time to retry is over
            raise
        except StoreUnavailable:
            receipts = await self._insist(jobs)
        self._counts.note(jobs, receipts)
        self._store.ring((jobs[0].queue,) if len(jobs) == 1 else {job.queue for job in jobs})
        return receipts

    async def _insist(self, jobs: Sequence[NewJob]) -> list[Receipt]:
        loop = asyncio.get_running_loop()
        deadline, pause = loop.time() + self._patience, _FIRST_RETRY_SECONDS
        while True:
            await asyncio.sleep(pause)
            pause *= 2
            try:
                return await self._store.insert(jobs)
            except StoreUnavailable as error:
                if loop.time() + pause > deadline:
                    which = f"job {jobs[0].id}" if len(jobs) == 1 else f"{len(jobs)} jobs"
                    raise StoreUnavailable(
                        f"{error}; whether {which} was stored is unknown: enqueue again with the same id or unique key"
                    ) from error

    async def _drain(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                self._begun = asyncio.get_running_loop().time()
                await self._store_batch(batch)
        finally:
            self._busy = False

    def _look_after_waiting(self) -> None:
        """Store the waiting jobs without the batch before, if that takes long."""
        loop = asyncio.get_running_loop()
        self._watch = None
        if not self._waiting:
            return
        if loop.time() - self._begun < _HELD_BACK_SECONDS:
            self._watch = loop.call_later(_HELD_BACK_SECONDS, self._look_after_waiting)
            return
        batch, self._waiting = self._waiting, []
        task = loop.create_task(self._store_batch(batch))
        self._ahead.add(task)
        task.add_done_callback(self._ahead.discard)

    async def _store_batch(self, batch: list[tuple[NewJob, asyncio.Future[Receipt]]]) -> None:
        together = [pair for pair in batch if not _may_be_refused(pair[0])]
        try:
            if together:
                receipts = await self.put_all([job for job, _ in together])
                for (_, future), receipt in zip(together, receipts, strict=True):
                    if not future.done():
                        future.set_result(receipt)
        except StoreLocked as error:
            _fail(batch, error)
            return
        except StoreUnavailable as error:
            _fail(together, error)
        except PerdureError:
            await self._one_by_one(together)
        except Exception as error:  # noqa: BLE001 - it is raised where the jobs were enqueued
            _fail(batch, error)
            return
        except BaseException as error:
            _fail(batch + self._waiting, error)
            self._waiting.clear()
            raise
        await self._one_by_one([pair for pair in batch if _may_be_refused(pair[0])])

    async def _one_by_one(self, batch: list[tuple[NewJob, asyncio.Future[Receipt]]]) -> None:
        for number, (job, future) in enumerate(batch):
            try:
                receipts = await self.put_all((job,))
            except StoreLocked as error:  # the others have waited as long
                _fail(batch[number:], error)
                return
            except Exception as error:  # noqa: BLE001 - it is raised where the job was enqueued
                if not future.done():
                    future.set_exception(error)
            else:
                if not future.done():
                    future.set_result(receipts[0])


def _may_be_refused(job: NewJob) -> bool:
    return job.unique is not None and job.unique.on_conflict is OnConflict.REJECT


def _fail(batch: list[tuple[NewJob, asyncio.Future[Receipt]]], error: BaseException) -> None:
    for _, future in batch:
        if not future.done():
            future.set_exception(error)
