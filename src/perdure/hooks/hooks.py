"""All hooks of one app; every kind of the app refers to the same ones."""

from __future__ import annotations

from typing import Final

from perdure.hooks.around import Around
from perdure.hooks.lifespan import Lifespans


class Hooks:
    """The middleware around each attempt, the first outermost, and the lifespans around each worker."""

    __slots__ = ("lifespans", "middleware")

    def __init__(self) -> None:
        self.middleware: tuple[Around, ...] = ()
        self.lifespans = Lifespans()


NO_HOOKS: Final = Hooks()
