"""How many jobs this process has stored, by queue and kind."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from typing import Final

from perdure.domain.jobs.job import Intake, NewJob, Receipt
from perdure.domain.operate.statistics import OTHER

PAIRS_LIMIT: Final = 1_000


class EnqueueCounts:
    """Counts new jobs, also those that a transaction of the caller may undo later; a job that existed does not count.

    Beyond a limit of queues and kinds the rest is counted as `other`.
    """

    def __init__(self, most_pairs: int = PAIRS_LIMIT) -> None:
        self._most_pairs = most_pairs
        self._lock = threading.Lock()  # handlers in threads enqueue at the same time
        self.jobs: dict[tuple[str, str], int] = {}

    def note(self, jobs: Sequence[NewJob], receipts: Sequence[Receipt]) -> None:
        """Count what was stored."""
        stored = zip(jobs, receipts, strict=True)
        pairs = Counter((job.queue, job.kind) for job, receipt in stored if receipt.intake is Intake.NEW)
        for (queue, kind), number in pairs.items():
            self.add(queue, kind, number)

    def add(self, queue: str, kind: str, jobs: int = 1) -> None:
        """Count so many jobs of a queue and kind."""
        pair = queue, kind
        with self._lock:
            if pair not in self.jobs and len(self.jobs) >= self._most_pairs:
                pair = OTHER, OTHER
            self.jobs[pair] = self.jobs.get(pair, 0) + jobs

    def take(self) -> list[tuple[str, str, int]]:
        """Return the counts so far, which another process adds to its own, and start again from zero."""
        with self._lock:
            taken, self.jobs = self.jobs, {}
        return [(*pair, jobs) for pair, jobs in taken.items()]
