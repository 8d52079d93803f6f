"""All hooks of one app; every kind of the app refers to the same ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from perdure.hooks.around import Around
from perdure.hooks.lifespan import Lifespans
from perdure.hooks.middleware import call_within, call_within_blocking
from perdure.hooks.tracing import JobTracer


class StoredJobs(Protocol):
    """Counts the jobs that a process stores."""

    def add(self, queue: str, kind: str, jobs: int = 1) -> None:
        """Count this many jobs of a queue and kind."""

    def take(self) -> list[tuple[str, str, int]]:
        """Return the counts so far, which another process adds to its own, and start again from zero."""


class Hooks:
    """The middleware around each attempt, the first outermost, and the lifespans around each worker.

    `call` and `call_blocking` call a handler inside the middleware. `tracer` follows jobs; None: nothing does.
    `on_worker` is called with each worker that the app makes. `enqueued` counts the jobs that the app stores.
    """

    __slots__ = ("call", "call_blocking", "enqueued", "lifespans", "middleware", "on_worker", "tracer")

    def __init__(self) -> None:
        self.lifespans = Lifespans()
        self.tracer: JobTracer | None = None
        self.on_worker: Callable[[object], None] | None = None
        self.enqueued: StoredJobs | None = None
        self._set_middleware(())

    def add_middleware(self, around: Around) -> None:
        """Add a middleware, inside the others."""
        self._set_middleware((*self.middleware, around))

    def log_fields(self) -> dict[str, str]:
        """The fields that the tracer adds to a log line written now."""
        return {} if self.tracer is None else self.tracer.log_fields()

    def stored(self, queue: str, kind: str, jobs: int = 1) -> None:
        """Count jobs that were stored for the app, but not through it."""
        if self.enqueued is not None:
            self.enqueued.add(queue, kind, jobs)

    def _set_middleware(self, middleware: tuple[Around, ...]) -> None:
        self.middleware = middleware
        self.call = call_within(middleware)
        self.call_blocking = call_within_blocking(middleware)


NO_HOOKS: Final = Hooks()
