"""A page of memory that producer and workers share, to count and time without messages.

A handler that is measured must cost next to nothing and must not touch the database under
test. So each worker process writes into its own cells of a memory-mapped file: how many
handlers it has started, when the first one was, and, for jobs that carry the time of their
enqueue call, how long each waited. The clock is CLOCK_MONOTONIC, which all processes of a
machine share.

Cells are 64-bit unsigned integers: one gate, three per worker, then one per job.
"""

from __future__ import annotations

import mmap
import os
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CELL = 8
GATE = 0
MAX_WORKERS = 8
FIRST_WAIT = 1 + 3 * MAX_WORKERS
READY, STARTED, FIRST_START = range(3)


@dataclass(frozen=True, slots=True)
class Ledger:
    """The shared cells, as the process that owns the measurement sees them."""

    path: Path
    cells: memoryview
    jobs: int

    def open_gate(self) -> None:
        """Let every worker that waits at the gate begin at once."""
        self.cells[GATE] = 1

    def ready(self) -> int:
        """How many workers wait at the gate."""
        return sum(self._column(READY))

    def started(self) -> int:
        """How many handlers have been started by all workers together."""
        return sum(self._column(STARTED))

    def first_start_ns(self) -> int:
        """When the first handler of any worker was started."""
        return min(moment for moment in self._column(FIRST_START) if moment)

    def waits_ns(self) -> list[int]:
        """How long each job waited, in order of index; 0 for one that has not started."""
        return list(self.cells[FIRST_WAIT : FIRST_WAIT + self.jobs])

    def _column(self, kind: int) -> list[int]:
        return [self.cells[1 + 3 * worker + kind] for worker in range(MAX_WORKERS)]


class WorkerLedger:
    """The shared cells, as one worker process sees them."""

    def __init__(self, path: Path, worker: int) -> None:
        """Join the ledger at `path` as worker number `worker`."""
        self._cells = _map(path)
        self._base = 1 + 3 * worker
        self._lock = threading.Lock()

    def wait_at_gate(self) -> None:
        """Say that this worker is set up, and return once all others are too."""
        self._cells[self._base + READY] = 1
        while not self._cells[GATE]:
            time.sleep(0.001)

    def start(self, index: int, sent_ns: int) -> None:
        """Record that the handler of job `index` has begun; `sent_ns` 0 means not timed."""
        now = time.monotonic_ns()
        with self._lock:
            count = self._cells[self._base + STARTED]
            self._cells[self._base + STARTED] = count + 1
            if not count:
                self._cells[self._base + FIRST_START] = now
        if sent_ns:
            self._cells[FIRST_WAIT + index] = now - sent_ns


@contextmanager
def new_ledger(folder: Path, jobs: int) -> Iterator[Ledger]:
    """Make a ledger for up to `jobs` timed jobs; it is gone at the end."""
    path = folder / "ledger"
    path.write_bytes(bytes(CELL * (FIRST_WAIT + jobs)))
    try:
        yield Ledger(path, _map(path), jobs)
    finally:
        path.unlink()


def _map(path: Path) -> memoryview:
    handle = os.open(path, os.O_RDWR)
    try:
        return memoryview(mmap.mmap(handle, 0)).cast("Q")
    finally:
        os.close(handle)
