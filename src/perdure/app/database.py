"""The database of an app: opens stores for event loops and blocking callers, and stores jobs through them."""

from __future__ import annotations

import os
from collections.abc import Coroutine, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from perdure.app.connect import DEFAULT_URL, LISTEN_URL_VARIABLE, listen_url_for, store_for
from perdure.clock import Clock
from perdure.domain.duration import Duration, parse_duration
from perdure.domain.flows.flow import Progress
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import JobView, NewJob, Receipt
from perdure.enqueue.counts import EnqueueCounts
from perdure.enqueue.stores import OpenStore, Stores
from perdure.errors import ConflictError, SettingsError
from perdure.hooks.hooks import Hooks
from perdure.lifecycle.bridges.portal import Portal
from perdure.lifecycle.bridges.without_loop import run_without_loop
from perdure.storage.intake import BorrowingStore
from perdure.storage.port import Store
from perdure.storage.supply import Supply

R = TypeVar("R")
_URL_VARIABLE = "PERDURE_URL"


class AppDatabase:
    """The stores of one database: one for each event loop, and one for callers that block.

    Connections are opened when they are first used. `diverted` replaces all of them, for a test.
    The tracer of `hooks` sees each enqueue.
    """

    def __init__(
        self,
        url: str | None,
        *,
        listen_url: str | None,
        migrate: bool,
        enqueue_patience: Duration,
        clock: Clock | None,
        hooks: Hooks,
    ) -> None:
        self.url = url or os.environ.get(_URL_VARIABLE) or DEFAULT_URL
        self._listen_url = _checked_listen_url(self.url, listen_url)
        self.hooks = hooks
        self.enqueued = hooks.enqueued = EnqueueCounts()
        self._clock = clock
        self._stores = Stores(
            self.new_store,
            migrate=migrate,
            patience=parse_duration("enqueue_patience", enqueue_patience, error=SettingsError),
            counts=self.enqueued,
        )
        self._portal = Portal()
        self._is_diverted = False
        try:
            self._unopened: BorrowingStore = self.new_store()  # refuse a bad URL here, not at the first job
        except SettingsError as error:
            sources = {"url": (url, _URL_VARIABLE), "listen_url": (listen_url, LISTEN_URL_VARIABLE)}
            given, variable = sources.get(error.field, (error.field, ""))
            if given:
                raise
            raise SettingsError(variable, str(error).removeprefix(f"{error.field} ")) from None

    async def store(self) -> Store:
        """The open store of the running event loop: the storage port, for tools and tests."""
        return (await self._stores.here()).store

    def new_store(self) -> Store:
        """A store of this app's database, not open yet: for parts that must not share the app's own connections."""
        return store_for(self.url, self._clock, listen_url=self._listen_url)

    async def migrate(self) -> list[str]:
        """Create or update the tables, even with `migrate=False`; returns the applied migrations."""
        store = self.new_store()
        await store.open()
        try:
            return await store.migrate()
        finally:
            await store.close()

    def migrate_sync(self) -> list[str]:
        """Blocking version of `migrate`."""
        return self.run_sync(self.migrate())

    @property
    def migrates(self) -> bool:
        """Whether opening the database brings its schema up to date."""
        return self._stores.migrate

    def keep_schema(self) -> None:
        """From now on, only check the schema when the database is opened; overrides `migrate=`."""
        self._stores.migrate = False

    async def close(self) -> None:
        """Close the store that the running loop has opened."""
        await self._stores.close()

    def close_sync(self) -> None:
        """Close the store that blocking calls have opened."""
        self._portal.call(self._stores.close())
        self._portal.close()

    def run_sync(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """Run one of this app's coroutines to its end, for callers without an event loop."""
        return self._portal.call(coroutine)

    @contextmanager
    def diverted(
        self, *, url: str, clock: Clock, stores: Stores, unopened: BorrowingStore, portal: Portal
    ) -> Iterator[None]:
        """Store jobs elsewhere until the block ends: for tests. Stores that were open before stay open and unused."""
        if self._is_diverted:
            raise ConflictError("this app is already in a sandbox: leave that one first, or give each test its own App")
        home = self.url, self._clock, self._stores, self._unopened, self._portal
        self._is_diverted = True
        self.url, self._clock, self._stores, self._unopened, self._portal = url, clock, stores, unopened, portal
        try:
            yield
        finally:
            self.url, self._clock, self._stores, self._unopened, self._portal = home
            self._is_diverted = False

    async def put(self, job: NewJob, connection: Any) -> Receipt:
        """Store one job, through the caller's own connection if given."""
        if (tracer := self.hooks.tracer) is None:
            return await self._put_one(job, connection)
        with tracer.enqueuing() as enqueuing:
            receipt = await self._put_one(enqueuing.stamp(job), connection)
            enqueuing.stored((receipt,))
            return receipt

    def put_sync(self, job: NewJob, connection: Any) -> Receipt:
        """Blocking version of `put`."""
        if connection is not None:
            return self._put_here([job], connection)[0]
        return self._portal.call(self.put(job, None))

    async def _put_one(self, job: NewJob, connection: Any) -> Receipt:
        if connection is not None:
            return (await self._insert((job,), connection))[0]
        opened = self._stores.current() or await self._stores.here()
        return await opened.group_commit.put(job)

    async def _put_all(self, jobs: Iterable[NewJob], connection: Any) -> list[Receipt]:
        if (tracer := self.hooks.tracer) is None:
            return await self._insert(jobs, connection)
        with tracer.enqueuing() as enqueuing:
            receipts = await self._insert(map(enqueuing.stamp, jobs), connection)
            enqueuing.stored(receipts)
            return receipts

    async def _insert(self, jobs: Iterable[NewJob], connection: Any) -> list[Receipt]:
        if connection is not None:
            made = list(jobs)
            receipts = await self._unopened.through(connection).insert(made)
            self.enqueued.note(made, receipts)
            return receipts
        opened: OpenStore = await self._stores.here()
        return await opened.group_commit.put_all(Supply(jobs))

    def _put_here(self, jobs: Iterable[NewJob], connection: Any) -> list[Receipt]:
        """Store jobs through a blocking connection, in the thread that owns it."""
        store = self._unopened.through(connection, blocking=True)
        if (tracer := self.hooks.tracer) is None:
            made = list(jobs)
            receipts = run_without_loop(store.insert(made))
        else:
            with tracer.enqueuing() as enqueuing:
                made = [enqueuing.stamp(job) for job in jobs]
                receipts = run_without_loop(store.insert(made))
                enqueuing.stored(receipts)
        self.enqueued.note(made, receipts)
        return receipts

    async def view(self, job_id: JobId) -> JobView | None:
        """One job in its current state."""
        return await (await self.store()).job(job_id)

    async def final(self, job_id: JobId) -> JobView:
        """Wait until the job is final, and return it."""
        return await (await self._stores.outcomes()).final(job_id)

    async def progress(self, job_id: JobId) -> Progress | None:
        """The last progress that the job reported."""
        return await (await self.store()).progress(job_id)


def _checked_listen_url(url: str, given: str | None) -> str | None:
    """The given URL, or the one from the environment."""
    if given is None:
        return listen_url_for(url)
    if not isinstance(given, str):
        raise SettingsError("listen_url", f"must be text, got {type(given).__name__}")
    if str(url).startswith("sqlite:"):
        raise SettingsError("listen_url", "is for PostgreSQL: remove it for an SQLite file")
    return given
