"""How a handler learns that it should end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class StopFlag:
    """Shows that the worker is closing, or why an attempt must end; raised by the worker, read by handlers."""

    __slots__ = ("_calls", "closing", "reason")

    def __init__(self, *, closing: bool = False) -> None:
        self.reason: str | None = None
        self.closing = closing
        self._calls: list[Callable[[], object]] | None = None  # few ever wait

    @property
    def is_raised(self) -> bool:
        """Whether the worker is closing, or the attempt must end."""
        return self.closing or self.reason is not None

    def close(self) -> None:
        """The worker is closing."""
        self.closing = True
        self._call()

    def stop(self, reason: str) -> None:
        """The attempt must end."""
        self.reason = reason
        self._call()

    @contextmanager
    def calling(self, call: Callable[[], object]) -> Iterator[None]:
        """Call this as soon as the flag is raised, perhaps from another thread and more than once."""
        if self._calls is None:
            self._calls = []
        self._calls.append(call)  # before the look, so that nothing is missed in between
        try:
            if self.is_raised:
                call()
            yield
        finally:
            self._calls.remove(call)

    def _call(self) -> None:
        for call in tuple(self._calls or ()):
            call()
