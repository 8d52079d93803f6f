"""A function that runs code before and after something.

It is a generator function with one `yield` (plain or async), or a function decorated with `contextmanager` or
`asynccontextmanager`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from types import TracebackType
from typing import Any, cast

from msgspec import Struct

from perdure.errors import SettingsError

RunCoroutine = Callable[[Coroutine[Any, Any, Any]], Any]
"""Runs a coroutine to its end for a blocking caller, always on the same event loop."""


class Around(Struct, frozen=True):
    """One such function, checked: `open` makes a context manager, which is async if `is_async`.

    `generate` is the function itself if it makes a generator and no context manager.
    """

    name: str
    is_async: bool
    open: Callable[..., Any]
    generate: Callable[..., Any] | None = None


def read_around(field: str, function: object, arguments: int) -> Around:
    """Check a function that takes this many arguments and yields once; anything else is refused by name."""
    if not callable(function):
        raise SettingsError(field, f"must be a function that yields once, got {function!r}")
    name = getattr(function, "__name__", type(function).__name__)
    inner = inspect.unwrap(function)
    if inner is not function and (inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner)):
        made = Around(name, inspect.isasyncgenfunction(inner), function)
    elif inspect.isasyncgenfunction(function):
        made = Around(name, is_async=True, open=asynccontextmanager(function), generate=function)
    elif inspect.isgeneratorfunction(function):
        made = Around(name, is_async=False, open=contextmanager(function), generate=function)
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
    """An async context manager for blocking code.

    It is entered and left in one task of another event loop: a context variable can be reset only in the context that
    set it, and a timeout or a task group left only in its own task. Exceptions are raised in the caller's thread, never
    in that task, where a SystemExit would end the event loop.
    """

    def __init__(self, manager: AbstractAsyncContextManager[Any], run: RunCoroutine) -> None:
        self._manager = manager
        self._run = run

    def __enter__(self) -> None:
        if (problem := self._run(self._open())) is not None:
            raise problem

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        outcome: bool | BaseException = self._run(self._close(error))
        if isinstance(outcome, BaseException):
            if outcome is error:
                return False
            raise outcome
        return outcome

    async def _open(self) -> BaseException | None:
        loop = asyncio.get_running_loop()
        opened: asyncio.Future[BaseException | None] = loop.create_future()
        self._over: asyncio.Future[BaseException | None] = loop.create_future()
        self._life = loop.create_task(self._live(opened))
        return await opened

    async def _close(self, error: BaseException | None) -> bool | BaseException:
        if not self._over.done():  # done: cancelled from inside, by its own timeout
            self._over.set_result(error)
        return await self._life

    async def _live(self, opened: asyncio.Future[BaseException | None]) -> bool | BaseException:
        """Enter the manager, wait for the end of the block, leave it; returns an error, or whether it caught one."""
        try:
            await self._manager.__aenter__()
        except BaseException as problem:  # noqa: BLE001 - it is raised in the caller's thread
            opened.set_result(problem)
            return problem
        opened.set_result(None)
        try:
            error = await self._over
        except asyncio.CancelledError as cancelled:
            error = cancelled
        try:
            caught = await self._manager.__aexit__(None if error is None else type(error), error, _traceback_of(error))
        except BaseException as problem:  # noqa: BLE001 - it is raised in the caller's thread
            return problem
        return error if isinstance(error, asyncio.CancelledError) and not caught else bool(caught)


def blocking(around: Around, run: RunCoroutine, *arguments: object) -> AbstractContextManager[Any]:
    """The manager that the function makes, for blocking code."""
    made = around.open(*arguments)
    return cast("AbstractContextManager[Any]", Bridged(made, run) if around.is_async else made)


def _traceback_of(error: BaseException | None) -> TracebackType | None:
    return None if error is None else error.__traceback__
