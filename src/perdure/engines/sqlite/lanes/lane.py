"""A thread with a connection of its own that runs operations for the event loop.

SQLite's calls block, so they leave the loop's thread. All operations that arrived while the thread was busy are taken
as one batch, and its answers go back to the loop in one call.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

from perdure.engines.sqlite.database.drivers import Connection
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.errors import ForkError, StoreUnavailable
from perdure.storage.time_limits import deadline

T = TypeVar("T")
Work = Callable[[Transaction], T]

_WORKS_PER_BATCH: Final = 500


class Operation(ABC):
    """An operation and its outcome."""

    __slots__ = ("answered", "deadline", "done", "error", "put_at", "result")

    def __init__(self) -> None:
        self.put_at = 0.0  # when it was handed in, by the monotonic clock
        self.deadline = deadline()  # by the same
        self.answered = False  # before the rest of its batch
        self.done = False  # committed: later errors of its batch do not affect it
        self.result: Any = None
        self.error: Exception | None = None

    @abstractmethod
    def work(self, transaction: Transaction) -> Any:
        """Do it; in the lane's thread, and perhaps more than once."""

    @abstractmethod
    def deliver(self) -> None:
        """Pass the outcome to the waiting caller; on the loop."""

    def abandoned(self) -> bool:
        """Whether its caller stopped waiting, so that it need not start."""
        return False


class Request(Operation):
    """An operation for which one future waits."""

    __slots__ = ("_future", "_work")

    def __init__(self, work: Work[T], future: asyncio.Future[T]) -> None:
        super().__init__()
        self._work = work
        self._future = future

    def work(self, transaction: Transaction) -> Any:
        """Do it; in the lane's thread, and perhaps more than once."""
        return self._work(transaction)

    def deliver(self) -> None:
        """Pass the outcome to the waiting caller; on the loop."""
        resolve(self._future, self.result, self.error)

    def abandoned(self) -> bool:
        """Whether its caller stopped waiting, so that it need not start."""
        return self._future.cancelled()


class Lane(ABC):
    """The thread, its queue, and the way back to the loop."""

    def __init__(self, name: str, connect: Callable[[], Connection]) -> None:
        self._name = name
        self._connect = connect
        self._queue: queue.SimpleQueue[Operation | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._is_open = False
        self._pid = 0
        self._under_way = 0

    async def open(self) -> None:
        """Start the thread and wait until it has its connection."""
        self._loop = asyncio.get_running_loop()
        self._pid = os.getpid()
        opened: asyncio.Future[None] = self._loop.create_future()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._thread = threading.Thread(target=self._main, args=(opened,), name=self._name, daemon=True)
        self._thread.start()
        self._is_open = True
        try:
            await opened
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Finish what was handed in, then end the thread; a caller that was cancelled meanwhile may ask again."""
        if (thread := self._last_call()) is not None:
            await asyncio.wait({self._ended})
            thread.join()

    def abandon(self) -> None:
        """The same once the event loop is closed; blocks until the thread has ended."""
        if (thread := self._last_call()) is not None:
            thread.join()

    def submit(self, work: Work[T]) -> asyncio.Future[T]:
        """Hand work to the thread; the future brings its result, or its error."""
        future: asyncio.Future[T] = self._loop.create_future()
        self.put(Request(work, future))
        return future

    def put(self, operation: Operation) -> None:
        """Hand an operation to the thread."""
        if self._pid not in {0, os.getpid()}:
            raise ForkError("this store was opened before a fork: open one in each process, after forking")
        if not self._is_open:
            raise StoreUnavailable("the store is closed: open a new one")
        operation.put_at = time.monotonic()
        self._under_way += 1
        self._queue.put(operation)

    def is_busy(self) -> bool:
        """Whether anything handed in is not answered yet; also of one that cannot be used at all."""
        return self._under_way > 0 or not self._is_open or self._pid != os.getpid()

    def _last_call(self) -> threading.Thread | None:
        """Take nothing more; the thread that is to end, if there is one in this process."""
        if self._is_open and self._pid == os.getpid():
            self._is_open = False
            self._queue.put(None)
        return self._thread if self._pid == os.getpid() else None

    @abstractmethod
    def perform(self, connection: Connection, batch: list[Operation]) -> None:
        """Do the work of a batch and note result or error on each operation; raises if the connection is broken."""

    def idle(self, connection: Connection) -> None:  # noqa: B027 - a lane may have nothing to do then
        """Called when no operation has arrived for a while, if the last batch asked for it."""

    def rest(self) -> float | None:
        """How long to wait for work before `idle` is called; None waits for ever."""
        return None

    def afterwards(self, connection: Connection) -> None:  # noqa: B027 - as above
        """The answers are on their way: do work that no caller waits for."""

    def delivered(self) -> None:  # noqa: B027 - as above
        """Called on the loop with every batch of answers."""

    def answer_early(self, operations: list[Operation]) -> None:
        """Deliver these outcomes while the rest of their batch continues."""
        for operation in operations:
            operation.answered = True
        self._call_on_loop(self._deliver, operations)

    def _main(self, opened: asyncio.Future[None]) -> None:
        try:
            connection: Connection | None = self._connect()
        except Exception as error:  # noqa: BLE001 - passed to the caller that opens
            self._call_on_loop(resolve, opened, None, error)
        else:
            self._call_on_loop(resolve, opened, None, None)
            while batch := self._next(connection):
                connection = self._work(connection, batch)
                self._call_on_loop(self._deliver, [operation for operation in batch if not operation.answered])
                connection = self._tidy(connection)
            _give_up(connection)
        self._call_on_loop(resolve, self._ended, None, None)

    def _work(self, connection: Connection | None, batch: list[Operation]) -> Connection | None:
        """Perform a batch. A connection that fails even to end a transaction is replaced."""
        try:
            connection = connection or self._connect()
            self.perform(connection, batch)
        except Exception as error:  # noqa: BLE001 - passed to the caller
            for operation in batch:
                if not operation.done:
                    operation.error = operation.error or error
            _give_up(connection)
            return None
        return connection

    def _tidy(self, connection: Connection | None) -> Connection | None:
        try:
            if connection is not None:
                self.afterwards(connection)
        except Exception:  # noqa: BLE001 - no caller waits for it, and the thread continues
            _give_up(connection)
            return None
        return connection

    def _next(self, connection: Connection | None) -> list[Operation]:
        """Wait for operations and take all pending ones; empty when the lane is to end."""
        try:
            first = self._queue.get(timeout=self.rest())
        except queue.Empty:
            if connection is not None:
                with suppress(Exception):  # no caller waits for it; a broken connection shows at the next batch
                    self.idle(connection)
            first = self._queue.get()
        if first is None:
            return []
        batch = [first]
        while len(batch) < _WORKS_PER_BATCH and not self._queue.empty():
            following = self._queue.get()
            if following is None:
                self._queue.put(None)
                break
            batch.append(following)
        return batch

    def _call_on_loop(self, call: Callable[..., None], *args: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(call, *args)
        except RuntimeError:
            if not self._loop.is_closed():
                raise

    def _deliver(self, batch: list[Operation]) -> None:
        self._under_way -= len(batch)
        self.delivered()
        for operation in batch:
            operation.deliver()


def _give_up(connection: Connection | None) -> None:
    if connection is not None:
        with suppress(Exception):
            connection.close()


def resolve(future: asyncio.Future[T], result: T, error: Exception | None) -> None:
    """Give a future its result or its error, unless its owner has given up."""
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)
