"""Opens an application's resources while a worker runs, and closes them after the last job."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from functools import partial
from types import TracebackType
from typing import Any
from weakref import WeakKeyDictionary

from perdure.errors import LifespanError
from perdure.hooks.around import Around, RunCoroutine, blocking

OnError = Callable[[str, BaseException], None]
"""Receives the name and the error of a lifespan that failed to close."""


class _Shared:
    """Resources that the workers of one event loop share."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0
        self.stack = AsyncExitStack()


class Lifespans:
    """The lifespans of one app: opened in declaration order, closed in reverse."""

    def __init__(self) -> None:
        self._declared: list[Around] = []
        self._shared: WeakKeyDictionary[asyncio.AbstractEventLoop, _Shared] = WeakKeyDictionary()

    def add(self, lifespan: Around) -> None:
        """Add a lifespan."""
        self._declared.append(lifespan)

    @asynccontextmanager
    async def opened(self, on_error: OnError) -> AsyncIterator[None]:
        """Open all lifespans; workers on the same event loop share them, and the last worker closes them.

        Raises LifespanError if one cannot be opened; those opened before it are closed again. A lifespan that fails to
        close is reported to `on_error`, and the others are still closed.
        """
        if not self._declared:
            yield
            return
        shared = self._shared.setdefault(asyncio.get_running_loop(), _Shared())
        async with shared.lock:
            if shared.users == 0:
                shared.stack = await _open_all(self._declared, on_error)
            shared.users += 1
        try:
            yield
        finally:
            async with shared.lock:
                shared.users -= 1
                if shared.users == 0:
                    await shared.stack.aclose()

    @contextmanager
    def opened_blocking(self, on_error: OnError, run: RunCoroutine) -> Iterator[None]:
        """Open all lifespans for blocking code; async ones run on the event loop behind `run`."""
        with ExitStack() as stack:
            for lifespan in self._declared:
                try:
                    manager = blocking(lifespan, run)
                    manager.__enter__()
                except Exception as error:
                    raise _not_opened(lifespan, error) from error
                stack.push(_Closing(manager.__exit__, lifespan.name, on_error))
            yield


class _Closing:
    """Closes one lifespan; reports an error instead of raising it, so that the others are closed too."""

    def __init__(self, close: Callable[..., Any], name: str, on_error: OnError) -> None:
        self._close = close
        self._name = name
        self._on_error = on_error

    def __enter__(self) -> None:
        """Do nothing: it is already open."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._close(None, None, None)
        except Exception as problem:  # noqa: BLE001 - the others are still to be closed
            self._on_error(self._name, problem)


async def _open_all(lifespans: Sequence[Around], on_error: OnError) -> AsyncExitStack:
    async with AsyncExitStack() as stack:
        for lifespan in lifespans:
            manager = lifespan.open()
            try:
                if lifespan.is_async:
                    await manager.__aenter__()
                else:
                    await _in_own_thread(manager.__enter__, undo=partial(manager.__exit__, None, None, None))
            except Exception as error:
                raise _not_opened(lifespan, error) from error
            stack.push_async_callback(_close, lifespan, manager, on_error)
        return stack.pop_all()


async def _close(lifespan: Around, manager: Any, on_error: OnError) -> None:
    try:
        if lifespan.is_async:
            await manager.__aexit__(None, None, None)
        else:
            await _in_own_thread(lambda: manager.__exit__(None, None, None))
    except Exception as error:  # noqa: BLE001 - the others are still to be closed
        on_error(lifespan.name, error)


async def _in_own_thread(function: Callable[[], Any], undo: Callable[[], Any] | None = None) -> None:
    """Call a function that may block, outside of asyncio's threads, which handlers may occupy.

    If its caller stopped waiting before it is done, its effect is undone.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[None] = loop.create_future()

    def run() -> None:
        problem: BaseException | None = None
        try:
            function()
        except BaseException as error:  # noqa: BLE001 - it is raised where it is awaited
            problem = error
        heard = Future[bool]()
        try:
            loop.call_soon_threadsafe(_settle, answer, problem, heard)
            is_awaited = heard.result()
        except RuntimeError:  # the event loop is closed
            is_awaited = False
        if not is_awaited and problem is None and undo is not None:
            undo()

    threading.Thread(target=run, name="perdure-lifespan", daemon=True).start()
    await answer


def _settle(answer: asyncio.Future[None], error: BaseException | None, heard: Future[bool]) -> None:
    heard.set_result(not answer.done())
    if answer.done():
        return
    if error is None:
        answer.set_result(None)
    else:
        answer.set_exception(error)


def _not_opened(lifespan: Around, error: Exception) -> LifespanError:
    return LifespanError(lifespan.name, f"{type(error).__name__}: {error}")
