"""All hooks of one app; every kind of the app refers to the same ones."""

from __future__ import annotations

from typing import Final

from perdure.hooks.around import Around
from perdure.hooks.lifespan import Lifespans
from perdure.hooks.middleware import call_within, call_within_blocking


class Hooks:
    """The middleware around each attempt, the first outermost, and the lifespans around each worker.

    `call` and `call_blocking` call a handler inside the middleware.
    """

    __slots__ = ("call", "call_blocking", "lifespans", "middleware")

    def __init__(self) -> None:
        self.lifespans = Lifespans()
        self._set_middleware(())

    def add_middleware(self, around: Around) -> None:
        """Declare one more, inside the others."""
        self._set_middleware((*self.middleware, around))

    def _set_middleware(self, middleware: tuple[Around, ...]) -> None:
        self.middleware = middleware
        self.call = call_within(middleware)
        self.call_blocking = call_within_blocking(middleware)


NO_HOOKS: Final = Hooks()
