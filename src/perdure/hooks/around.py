"""A function that runs code before and after something, as an application writes it.

It is a generator function with one `yield` (plain or async), or a function decorated with `contextmanager` or
`asynccontextmanager`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from types import TracebackType
from typing import Any, cast

from msgspec import Struct

from perdure.errors import SettingsError

RunCoroutine = Callable[[Coroutine[Any, Any, Any]], Any]
"""Runs a coroutine to its end for a caller that blocks, always on the same event loop."""


class Around(Struct, frozen=True):
    """One such function, checked: `open` makes a context manager, which is async if `is_async`."""

    name: str
    is_async: bool
    open: Callable[..., Any]


def read_around(field: str, function: object, arguments: int) -> Around:
    """Check a function that takes so many arguments and yields once; anything else is refused by name."""
    if not callable(function):
        raise SettingsError(field, f"must be a function that yields once, got {function!r}")
    name = getattr(function, "__name__", type(function).__name__)
    inner = inspect.unwrap(function)
    if inner is not function and (inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner)):
        made = Around(name, inspect.isasyncgenfunction(inner), function)
    elif inspect.isasyncgenfunction(function):
        made = Around(name, is_async=True, open=asynccontextmanager(function))
    elif inspect.isgeneratorfunction(function):
        made = Around(name, is_async=False, open=contextmanager(function))
    else:
        raise SettingsError(f"{field} {name}", "must yield once: write what comes before, `yield`, what comes after")
    try:
        inspect.signature(inner).bind(*range(arguments))
    except TypeError:
        wanted = "no arguments" if arguments == 0 else "one argument, the context"
        problem = f"must take {wanted}, got {name}{inspect.signature(inner)}"
        raise SettingsError(f"{field} {name}", problem) from None
    return made


class Bridged:
    """An async context manager for code that blocks; it runs on an event loop elsewhere."""

    def __init__(self, manager: AbstractAsyncContextManager[Any], run: RunCoroutine) -> None:
        self._manager = manager
        self._run = run

    def __enter__(self) -> None:
        self._run(_entered(self._manager))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        return bool(self._run(_left(self._manager, kind, error, traceback)))


def blocking(around: Around, run: RunCoroutine, *arguments: object) -> AbstractContextManager[Any]:
    """What the function makes, for code that blocks."""
    made = around.open(*arguments)
    return cast("AbstractContextManager[Any]", Bridged(made, run) if around.is_async else made)


async def _entered(manager: AbstractAsyncContextManager[Any]) -> None:
    await manager.__aenter__()


async def _left(
    manager: AbstractAsyncContextManager[Any],
    kind: type[BaseException] | None,
    error: BaseException | None,
    traceback: TracebackType | None,
) -> bool | None:
    return await manager.__aexit__(kind, error, traceback)
