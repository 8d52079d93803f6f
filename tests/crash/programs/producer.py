"""A producer to be killed: `producer.py URL LEDGER NAME NUMBER`.

The id of each job follows from the producer's name and a count, so it is known before the job is enqueued. A producer
that is started again reads in the ledger what it wanted and never heard of, and enqueues that once more.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from tests.crash.harness.ledger import Book, Ledger
from tests.crash.programs.jobs import a_call, build_app

from perdure import App, Call, Handle, StoreUnavailable

_LANES = 4
_PAUSE = 0.03
_BATCH = 5
_SPAN = 1_000_000


class Producer:
    """Enqueues until told to stop, in several lanes at once: one by one, and sometimes a batch."""

    def __init__(self, app: App, ledger: Ledger, name: str, first: int) -> None:
        self._app = app
        self._ledger = ledger
        self._name = name
        book = Book.read(ledger.path)
        mine = sum(by == name for by in book.wanted.values())
        numbers = {self._id(number): number for number in range(first, first + mine)}
        self._in_doubt = [number for job, number in numbers.items() if job not in book.receipts]
        self._numbers = self._count_on(first + mine)
        self._stopping = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._stopping.set)

    async def run(self) -> None:
        """Produce."""
        self._ledger.note("open", os.getpid(), self._name)
        await asyncio.gather(*(self._run_lane(lane) for lane in range(_LANES)))

    async def _run_lane(self, lane: int) -> None:
        while not self._stopping.is_set():
            await self._insist([next(self._numbers) for _ in range(_BATCH if lane == 0 else 1)])
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), _PAUSE * (_BATCH if lane == 0 else 1))

    async def _insist(self, numbers: list[int]) -> None:
        """Enqueue; should even the engine's own patience run out, again, with the same ids."""
        for number in numbers:
            self._ledger.note("want", self._id(number), self._name)
        while True:
            try:
                handles = await self._enqueue(numbers)
            except StoreUnavailable:
                continue
            for handle in handles:
                self._ledger.note("enqueued", handle.id, handle.intake)
            return

    async def _enqueue(self, numbers: list[int]) -> list[Handle[object]]:
        if len(numbers) > 1:
            return await self._app.enqueue_many(self._call(number) for number in numbers)
        kind, arguments = a_call(numbers[0])
        prepared = self._app.job_named(kind).using(id=self._id(numbers[0]))
        return [await prepared.enqueue(**arguments)]

    def _call(self, number: int) -> Call[object]:
        kind, arguments = a_call(number)
        return self._app.job_named(kind).using(id=self._id(number)).call(**arguments)

    def _count_on(self, number: int) -> Iterator[int]:
        yield from self._in_doubt
        while True:
            yield number
            number += 1

    def _id(self, number: int) -> str:
        return str(uuid5(NAMESPACE_URL, f"{self._name}/{number}"))


async def main(url: str, path: Path, name: str, place: int) -> None:
    """Open, produce, close; a database that is away at the start is waited for."""
    ledger = Ledger(path)
    app = build_app(url, ledger, name)
    producer = Producer(app, ledger, name, place * _SPAN)
    while True:
        try:
            await app.store()
        except StoreUnavailable:
            await asyncio.sleep(0.1)
        else:
            break
    await producer.run()
    await app.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])))
