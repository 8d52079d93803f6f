"""Runs a handler inside an application's middleware, the first declared outermost.

A middleware may raise instead of yielding, replace the handler's exception, or catch it: then the attempt succeeds
without a result.

Every attempt runs through this code. So an app's middleware is composed into one function at declaration, and a
generator is advanced directly as long as nothing is raised. If the handler raises, contextlib takes over the generator
and decides what the exception means.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, TypeVar

from perdure.hooks.around import Around, RunCoroutine, blocking

Args = tuple[Any, ...]
Kwargs = dict[str, Any]
Handler = Callable[..., Any]
Call = Callable[[Handler, Any, Args, Kwargs], Awaitable[Any]]
"""Calls an async handler with these arguments; the second parameter is the attempt's context."""

CallBlocking = Callable[[Handler, Any, Args, Kwargs, RunCoroutine], Any]
"""Calls a sync handler; async middleware runs on the event loop behind the last parameter."""

_Generator = TypeVar("_Generator")
_ENDED: Final = object()


def call_within(around: Sequence[Around]) -> Call:
    """A function that calls an async handler inside these middleware.

    It returns the handler's result, or None if a middleware caught its exception.
    """
    call: Call = _call
    for each in reversed(around):
        call = _outside(_within(each), call)
    return call


def call_within_blocking(around: Sequence[Around]) -> CallBlocking:
    """Like `call_within`, for a sync handler."""
    call: CallBlocking = _call_blocking
    for each in reversed(around):
        call = _outside_blocking(_within_blocking(each), call)
    return call


def _call(handler: Handler, _context: Any, args: Args, kwargs: Kwargs) -> Awaitable[Any]:
    awaitable: Awaitable[Any] = handler(*args, **kwargs)
    return awaitable


def _call_blocking(handler: Handler, _context: Any, args: Args, kwargs: Kwargs, _run: RunCoroutine) -> Any:
    return handler(*args, **kwargs)


def _outside(outer: Call, inner: Call) -> Call:
    def call(handler: Handler, context: Any, args: Args, kwargs: Kwargs) -> Awaitable[Any]:
        return outer(inner, context, (handler, context, args, kwargs), {})

    return outer if inner is _call else call


def _outside_blocking(outer: CallBlocking, inner: CallBlocking) -> CallBlocking:
    def call(handler: Handler, context: Any, args: Args, kwargs: Kwargs, run: RunCoroutine) -> Any:
        return outer(inner, context, (handler, context, args, kwargs, run), {}, run)

    return outer if inner is _call_blocking else call


def _within(around: Around) -> Call:
    if around.generate is None:
        return _within_manager(around)
    return _within_async_generator(around.generate) if around.is_async else _within_generator(around.generate)


def _within_generator(generate: Callable[..., Any]) -> Call:
    async def call(handler: Handler, context: Any, args: Args, kwargs: Kwargs) -> Any:
        generator = generate(context)
        if next(generator, _ENDED) is _ENDED:
            raise _never_yielded()
        try:
            result = await handler(*args, **kwargs)
        except BaseException as error:
            if not _entered(generator).__exit__(type(error), error, error.__traceback__):
                raise
            return None
        if next(generator, _ENDED) is not _ENDED:
            generator.close()
            raise _never_stopped()
        return result

    return call


def _within_async_generator(generate: Callable[..., Any]) -> Call:
    async def call(handler: Handler, context: Any, args: Args, kwargs: Kwargs) -> Any:
        generator = generate(context)
        if await anext(generator, _ENDED) is _ENDED:
            raise _never_yielded()
        try:
            result = await handler(*args, **kwargs)
        except BaseException as error:
            if not await _entered_async(generator).__aexit__(type(error), error, error.__traceback__):
                raise
            return None
        if await anext(generator, _ENDED) is not _ENDED:
            await generator.aclose()
            raise _never_stopped()
        return result

    return call


def _within_manager(around: Around) -> Call:
    async def call(handler: Handler, context: Any, args: Args, kwargs: Kwargs) -> Any:
        result = None
        if around.is_async:
            async with around.open(context):
                result = await handler(*args, **kwargs)
        else:
            with around.open(context):
                result = await handler(*args, **kwargs)
        return result

    return call


def _within_blocking(around: Around) -> CallBlocking:
    if around.generate is None or around.is_async:
        return _within_manager_blocking(around)
    return _within_generator_blocking(around.generate)


def _within_generator_blocking(generate: Callable[..., Any]) -> CallBlocking:
    def call(handler: Handler, context: Any, args: Args, kwargs: Kwargs, _run: RunCoroutine) -> Any:
        generator = generate(context)
        if next(generator, _ENDED) is _ENDED:
            raise _never_yielded()
        try:
            result = handler(*args, **kwargs)
        except BaseException as error:
            if not _entered(generator).__exit__(type(error), error, error.__traceback__):
                raise
            return None
        if next(generator, _ENDED) is not _ENDED:
            generator.close()
            raise _never_stopped()
        return result

    return call


def _within_manager_blocking(around: Around) -> CallBlocking:
    def call(handler: Handler, context: Any, args: Args, kwargs: Kwargs, run: RunCoroutine) -> Any:
        result = None
        with blocking(around, run, context):
            result = handler(*args, **kwargs)
        return result  # noqa: RET504 - it stays None if the middleware has caught the exception

    return call


def _itself(generator: _Generator) -> _Generator:
    return generator


# Context managers around a generator that has already yielded: only their exit is used.
_entered: Callable[[Any], Any] = contextmanager(_itself)
_entered_async: Callable[[Any], Any] = asynccontextmanager(_itself)


def _never_yielded() -> RuntimeError:
    return RuntimeError("generator didn't yield")  # the wording of contextlib


def _never_stopped() -> RuntimeError:
    return RuntimeError("generator didn't stop")
