"""What a call on the context returns: async handlers await it, sync handlers use it as the value itself."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

from perdure.errors import ConflictError

T_co = TypeVar("T_co", covariant=True)


class Answer(Coroutine[Any, Any, T_co]):
    """The result of a call on the context: `await` it in an async handler; in a sync one it is the value itself.

    It can also become a task: `asyncio.gather(ctx.step(…), ctx.step(…))`, `TaskGroup.create_task(ctx.step(…))`.
    """

    def __init__(self, call: str, value: T_co | None = None, coming: Coroutine[Any, Any, T_co] | None = None) -> None:
        self._call = call
        self._value = value
        self._coming = coming

    def __await__(self) -> Generator[Any, None, T_co]:
        return self._expected().__await__()

    def send(self, value: Any, /) -> Any:
        """Continue the coroutine, as a task does."""
        return self._expected().send(value)

    def throw(self, *error: Any) -> Any:
        """Raise an error in the coroutine, as a task does."""
        return self._expected().throw(*error)

    def close(self) -> None:
        """Close the coroutine without a result."""
        if self._coming is not None:
            self._coming.close()

    def __bool__(self) -> bool:
        if self._coming is not None:
            self._coming.close()
            raise ConflictError(f"{self._call} in an async handler: write `await {self._call}`")
        return bool(self._value)

    def _expected(self) -> Coroutine[Any, Any, T_co]:
        if self._coming is None:
            raise ConflictError(f"{self._call} in a sync handler: write it without `await`")
        return self._coming
