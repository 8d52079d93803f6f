"""What the tests of loans share: a store that can be slow or lose its answers, and jobs that wait to be let out."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, cast

from tests.support.bench import a_claim
from tests.support.builders.gates import some
from tests.support.builders.jobs import enqueue
from tests.support.databases.behind import query
from tests.support.waiting import until
from tests.support.working import Shift, seen

from perdure import App, Concurrency, JobState, Rate
from perdure.domain.gate import GateChanges, GateRequest, GateState, Held, Loan, LoanKey
from perdure.domain.jobs.ids import JobId, WorkerId
from perdure.errors import StoreUnavailable
from perdure.storage.gates import Gatekeeper
from perdure.storage.port import Store
from perdure.worker.gates.loan_keeper import LoanKeeper
from perdure.worker.gates.loans import Spare

UNUSED = "sqlite:///unused.db"


class Desk:
    """A store that notes who asks and what is lent, and can be slow, away, or lose its answers."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.asked: list[int] = []
        self.passed = 0
        self.lent: Counter[WorkerId] = Counter()
        self.returned: list[Spare] = []
        self.may_ask, self.may_answer, self.may_return = asyncio.Event(), asyncio.Event(), asyncio.Event()
        for each in (self.may_ask, self.may_answer, self.may_return):
            each.set()
        self.is_away = False
        self.answers_lost = 0
        """So many answers will get lost after all was written."""
        self.answers_late = 0
        """So many will get lost before it was, which is made up for by `write_late`."""
        self.returns_late = 0
        """The same for what goes back."""
        self._late: list[Callable[[], Awaitable[object]]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    @property
    def store(self) -> Store:
        return cast("Store", self)

    async def pass_gates(
        self, requests: Sequence[GateRequest], decide: Gatekeeper, borrower: WorkerId | None = None
    ) -> list[Held | None]:
        def note(state: GateState) -> tuple[list[Held | None], GateChanges]:
            answers, changes = decide(state)
            if borrower is not None:
                self.lent[borrower] += sum(loan.number for loan in changes.loans)
            return answers, changes

        self.asked.append(len(requests))
        await self.may_ask.wait()
        if self.is_away:
            raise StoreUnavailable("gone")
        if self.answers_late:
            self.answers_late -= 1
            self._late.append(lambda: self._store.pass_gates(requests, note, borrower))
            raise StoreUnavailable("gone, and what was asked is on its way")
        answers = await self._store.pass_gates(requests, note, borrower)
        await self.may_answer.wait()
        if self.answers_lost:
            self.answers_lost -= 1
            raise StoreUnavailable("gone before it could answer")
        self.passed += answers.count(None)
        return answers

    async def return_loans(
        self, borrower: WorkerId, back: Collection[Loan], left: Collection[Loan] = ()
    ) -> set[LoanKey]:
        self.returned.append(Spare(list(back), list(left)))
        await self.may_return.wait()
        if self.returns_late:
            self.returns_late -= 1
            self._late.append(lambda: self._store.return_loans(borrower, back, left))
            raise StoreUnavailable("gone, and what goes back is on its way")
        return await self._store.return_loans(borrower, back, left)

    async def write_late(self) -> None:
        late, self._late = self._late, []
        for write in late:
            await write()


class Room:
    """Jobs that stay inside until they are let out, by the queue that they came from."""

    def __init__(self, *gates: Concurrency | Rate) -> None:
        self.app = App(UNUSED)
        self.inside: Counter[str] = Counter()
        self.most = 0
        self.ran: Counter[str] = Counter()
        self._exits: dict[str, asyncio.Semaphore] = {}

        @self.app.job(gates=list(gates))
        async def greet(name: str) -> None:
            self.inside[name] += 1
            self.ran[name] += 1
            self.most = max(self.most, self.inside.total())
            try:
                await self._exit(name).acquire()
            finally:
                self.inside[name] -= 1

    def let_out(self, name: str, number: int = 1) -> None:
        for _ in range(number):
            self._exit(name).release()

    def _exit(self, name: str) -> asyncio.Semaphore:
        return self._exits.setdefault(name, asyncio.Semaphore(0))


async def enter(store: Store, queue: str, number: int) -> list[JobId]:
    """Hand in so many jobs that tell by their name which queue they come from."""
    return await some(store, number, queue=queue, args=f'{{"name":"{queue}"}}')


def keeper_of(shift: Shift) -> LoanKeeper:
    return shift.worker._parts.attempts.loan_keeper


def id_of(shift: Shift) -> WorkerId:
    assert shift.worker._parts.membership.worker_id is not None
    return shift.worker._parts.membership.worker_id


def lent(url: str) -> dict[tuple[str, int], int]:
    """What is lent by gate and worker, as it is written."""
    found = query(url, "SELECT key, worker_id, number FROM {gate_loan}")
    return {(key, worker_id): number for key, worker_id, number in found}


async def run_one(store: Store, shift: Shift) -> None:
    """One job from its beginning to its end, until the worker knows that it has ended."""
    await seen(store, await enqueue(store), JobState.SUCCEEDED)
    await until(lambda: not shift.worker._parts.attempts.loans.are_used)


def fresh(**gates: Any) -> GateRequest:
    """A job that comes straight from where it was enqueued."""
    return GateRequest(claim=a_claim("greet", is_fresh=True), **gates)


def claim_of(request: GateRequest) -> tuple[JobId, int]:
    return request.claim.job_id, request.claim.token


def quick_app(*gates: Concurrency | Rate) -> App:
    app = App(UNUSED)

    @app.job(gates=list(gates))
    async def greet(name: str) -> None:
        return None

    return app


def used(shift: Shift) -> tuple[int, int]:
    """How much a worker has by its own books, and how much of that it uses."""
    [account] = shift.worker._parts.attempts.loans._accounts.values()
    return account.number, account.used
