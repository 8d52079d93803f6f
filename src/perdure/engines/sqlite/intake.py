"""Where jobs come in.

Callers that wait at the same time share more than a commit: their jobs become one document and two statements.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from perdure.domain.job import NewJob, Receipt
from perdure.engines.sqlite.database import Database
from perdure.engines.sqlite.insertion import plan_insert
from perdure.engines.sqlite.lane import Operation, Request, settle
from perdure.engines.sqlite.plan import Ask, Do, Plan
from perdure.engines.sqlite.transaction import Transaction
from perdure.errors import StoreError, StoreUnavailable

__all__ = ["Ask", "Do", "IntakePart", "Plan", "plan_insert"]

_SHARED_AT_MOST: Final = 100


class Caller:
    """Somebody who waits for jobs to be stored."""

    __slots__ = ("future", "jobs")

    def __init__(self, jobs: Sequence[NewJob], future: asyncio.Future[list[Receipt]]) -> None:
        self.jobs = jobs
        self.future = future


class Collection(Operation):
    """One insertion for all callers that wait when it begins."""

    __slots__ = ("_callers", "_part")

    def __init__(self, part: IntakePart) -> None:
        super().__init__()
        self._part = part
        self._callers: list[Caller] = []

    def work(self, transaction: Transaction) -> list[Receipt]:
        """Insert the jobs of all who wait now, and of those already taken if this is a second try."""
        self._callers += self._part.take_waiting()
        return self._part.run_plan(transaction, [job for caller in self._callers for job in caller.jobs])

    def deliver(self) -> None:
        """Give each caller its own receipts; if one has spoilt it for all, each tries again alone."""
        if self.error is not None:
            self._callers += self._part.take_waiting()  # the transaction may not even have begun
        if self.error is not None and not isinstance(self.error, StoreUnavailable) and len(self._callers) > 1:
            for caller in self._callers:
                self._part.insert_alone(caller)
            return
        start = 0
        for caller in self._callers:
            end = start + len(caller.jobs)
            settle(caller.future, self.result and self.result[start:end], self.error)
            start = end


class IntakePart:
    """Intake of the store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.statements("intake.sql")
        self._waiting: deque[Caller] = deque()
        self._called = False

    async def insert(self, jobs: Sequence[NewJob]) -> list[Receipt]:
        """Store jobs; few and without unique keys, they join whoever else is waiting."""
        caller = Caller(jobs, asyncio.get_running_loop().create_future())
        if len(jobs) > _SHARED_AT_MOST or any(job.unique is not None for job in jobs):
            self.insert_alone(caller)
        else:
            # Append before looking at the flag, which the writer lowers before it takes: so nobody is left behind.
            self._waiting.append(caller)
            if not self._called:
                self._call()
        return await caller.future

    def insert_alone(self, caller: Caller) -> None:
        """Insert one caller's jobs by an operation of their own."""
        self._database.put(Request(lambda transaction: self.run_plan(transaction, caller.jobs), caller.future))

    def _call(self) -> None:
        self._called = True
        try:
            self._database.put(Collection(self))
        except StoreError:
            self._called = False
            self._waiting.clear()
            raise

    def take_waiting(self) -> list[Caller]:
        """Take all who wait, so that the next one who comes must call again."""
        self._called = False
        taken = []
        while self._waiting:
            caller = self._waiting.popleft()
            if not caller.future.done():
                taken.append(caller)
        return taken

    def run_plan(self, transaction: Transaction, jobs: Sequence[NewJob]) -> list[Receipt]:
        """Run the plan of insertion in a transaction of the store's own."""
        plan = plan_insert(self._sql, jobs, transaction.now, transaction.turns)
        answer: Any = None
        while True:
            try:
                step = plan.send(answer)
            except StopIteration as end:
                receipts: list[Receipt] = end.value
                return receipts
            if isinstance(step, Do):
                answer = transaction.change(step.sql, step.params)
            else:
                answer = transaction.run(step.sql, step.params)
