"""The database behind a site: the app's own, or one given by its URL.

A site opens its own store even if the app has one, so that a slow query of a page never delays an enqueue or a worker.
The store opens on first use. If the database is unavailable then, a later request tries again, at most once a second.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from perdure.app.app import App
from perdure.app.connect import listen_url_for, refuse_missing_file, store_for
from perdure.clock import Clock, SystemClock
from perdure.enqueue.stores import Stores
from perdure.errors import SettingsError, StoreError, StoreUnavailable
from perdure.events import Emitter
from perdure.storage.port import Store
from perdure.storage.time_limits import limited

_WAIT_AFTER_FAILURE_SECONDS: Final = 1.0  # seconds between two attempts to open a database
_OPEN_TIMEOUT: Final = timedelta(seconds=2)
_ASK_INTERVAL_SECONDS: Final = 5.0
_TOLD: Final = "it was started with --read-only or the setting read_only"


class Backing:
    """One database, and its app if the app is loaded.

    With `read_only`, or with a URL instead of an app, opening only checks the schema. Otherwise it also migrates the
    schema, if the app's settings allow that. A database that takes no writes makes it read-only too; it is asked again
    every few seconds, since a standby may be promoted.
    """

    def __init__(self, source: App | str, *, read_only: bool = False, clock: Clock | None = None) -> None:
        if not isinstance(source, App | str):
            raise SettingsError("source", f"must be a perdure.App or the URL of a database, got {source!r:.100}")
        self.app = source if isinstance(source, App) else None
        self.url = source if isinstance(source, str) else source.url
        self._is_told_to_read = read_only
        self._refuses: str | None = None
        self._ask_again_at = 0.0
        self.events = Emitter() if self.app is None else self.app.events
        self._clock = clock or SystemClock()
        migrates = self.app is not None and self.app.migrates and not read_only
        if not migrates:
            refuse_missing_file(self.url)
        self._make()  # a bad URL is refused here, not at the first request
        self._stores = Stores(self._make, migrate=migrates, patience=_OPEN_TIMEOUT)
        self._failed: tuple[float, StoreError] | None = None

    async def store(self) -> Store:
        """The open store of the running event loop; raises StoreError if it cannot be opened."""
        if (opened := self._stores.current()) is not None:
            await self._ask(opened.store)
            return opened.store
        if self._failed is not None and self._clock.monotonic() - self._failed[0] < _WAIT_AFTER_FAILURE_SECONDS:
            raise StoreUnavailable(str(self._failed[1])) from self._failed[1]
        try:
            store = (await self._stores.here()).store
        except StoreError as error:
            self._failed = self._clock.monotonic(), error
            raise
        self._failed = None
        await self._ask(store)
        return store

    def why_read_only(self) -> str | None:
        """Why every command is refused; None: commands are possible."""
        return _TOLD if self._is_told_to_read else self._refuses

    @property
    def read_only(self) -> bool:
        """Whether every command is refused."""
        return self.why_read_only() is not None

    @property
    def is_open(self) -> bool:
        """Whether the store of the running event loop is open."""
        return self._stores.current() is not None

    def opened(self) -> Store:
        """The store of the running event loop if it is open already; otherwise raises StoreUnavailable."""
        if (opened := self._stores.current()) is None:
            raise StoreUnavailable("the database is not open")
        return opened.store

    async def close(self) -> None:
        """Close the store of the running event loop."""
        await self._stores.close()

    async def _ask(self, store: Store) -> None:
        """Ask whether the database takes writes, at most every few seconds."""
        if not self._is_told_to_read and self._clock.monotonic() >= self._ask_again_at:
            self._refuses = await limited(store, _OPEN_TIMEOUT).why_read_only()
            self._ask_again_at = self._clock.monotonic() + _ASK_INTERVAL_SECONDS

    def _make(self) -> Store:
        if self.app is not None:
            return self.app.new_store()
        return store_for(self.url, listen_url=listen_url_for(self.url))
