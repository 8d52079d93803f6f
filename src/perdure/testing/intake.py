"""The intake of a sandbox: for every event loop, for sync callers, and for callers with a connection of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

from perdure.domain.jobs.job import NewJob, Receipt
from perdure.enqueue.group_commit import GroupCommit
from perdure.enqueue.stores import OpenStore, Stores
from perdure.errors import ArgumentError
from perdure.lifecycle.bridges.portal import Portal
from perdure.storage.intake import BorrowingStore, IntakeStore
from perdure.storage.port import Store

Note = Callable[[Sequence[NewJob], Sequence[Receipt]], object]
Stored = Callable[[Sequence[NewJob], Sequence[Receipt]], Awaitable[None]]


class SandboxStores(Stores):
    """The stores of an app in a sandbox: the same one for every loop."""

    def __init__(self, store: Store, group_commit: GroupCommit) -> None:
        super().__init__(lambda: store, migrate=False, patience=timedelta(0))
        self._opened = OpenStore(store, group_commit)

    async def here(self) -> OpenStore:
        """The store of the sandbox."""
        return self._opened

    async def close(self) -> None:
        """Keep the store open until the sandbox ends; release callers on the running loop that wait for a job."""
        if (outcomes := self._outcomes.pop(asyncio.get_running_loop(), None)) is not None:
            await outcomes.close()


class SandboxGroupCommit(GroupCommit):
    """Stores each enqueue by itself, because an inline job may enqueue another; reports it to the sandbox."""

    def __init__(self, store: Store, admit: Callable[[], None], stored: Stored) -> None:
        super().__init__(store, timedelta(0))
        self._admit = admit
        self._stored = stored

    async def put(self, job: NewJob) -> Receipt:
        """Store one job."""
        return (await self.put_all((job,)))[0]

    async def put_all(self, jobs: Sequence[NewJob]) -> list[Receipt]:
        """Store all these jobs or none."""
        self._admit()
        receipts = await super().put_all(jobs)
        await self._stored(jobs, receipts)
        return receipts


class SandboxBorrowing:
    """Intake through the caller's connection if it leads to the sandbox's database, as `ctx.transaction()` does.

    A connection to another database belongs to the app's own database, which the sandbox replaces; unless `strict`, the
    jobs are then stored at once, without it. Django's tests need this, because the transaction around a test is never
    committed. Jobs stored through a connection are recorded, but not run inline: they are not committed yet.
    """

    def __init__(
        self, store: BorrowingStore, group_commit: GroupCommit, portal: Portal, note: Note, *, strict: bool
    ) -> None:
        self._store = store
        self._group_commit = group_commit
        self._portal = portal
        self._note = note
        self._strict = strict

    def through(self, connection: object, *, blocking: bool = False) -> IntakeStore:
        """Intake through this connection, or without it."""
        intake = self._store.through(connection, blocking=blocking)
        without = None if self._strict else self._put_blocking if blocking else self._group_commit.put_all
        return BorrowingIntake(intake, self._note, without)

    async def _put_blocking(self, jobs: Sequence[NewJob]) -> list[Receipt]:
        """Never wait for the caller's loop, because there may be none."""
        return self._portal.call(self._group_commit.put_all(jobs))


class BorrowingIntake:
    """Intake through one connection; `without` is used if it leads to another database."""

    def __init__(
        self,
        intake: IntakeStore,
        note: Note,
        without: Callable[[Sequence[NewJob]], Awaitable[list[Receipt]]] | None,
    ) -> None:
        self._intake = intake
        self._note = note
        self._without = without

    async def insert(self, jobs: Sequence[NewJob]) -> list[Receipt]:
        """Store all these jobs or none."""
        try:
            receipts = await self._intake.insert(jobs)
        except ArgumentError:
            if self._without is None:
                raise
            return await self._without(jobs)
        self._note(jobs, receipts)
        return receipts
