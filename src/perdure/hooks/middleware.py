"""Runs a handler inside an application's middleware, the first declared outermost.

A middleware may raise instead of yielding, replace the handler's exception, or catch it: then the attempt has
succeeded, without a result.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from perdure.hooks.around import Around, RunCoroutine, blocking


async def call_within(around: Sequence[Around], context: Any, call: Callable[[], Awaitable[Any]]) -> Any:
    """Call an async handler inside these; its result, None if one of them has caught its exception."""
    if not around:
        return await call()
    first, result = around[0], None
    if first.is_async:
        async with first.open(context):
            result = await call_within(around[1:], context, call)
    else:
        with first.open(context):
            result = await call_within(around[1:], context, call)
    return result


def call_within_blocking(around: Sequence[Around], context: Any, call: Callable[[], Any], run: RunCoroutine) -> Any:
    """Call a sync handler inside these; async ones run on the event loop behind `run`."""
    if not around:
        return call()
    first, result = around[0], None
    with blocking(first, run, context):
        result = call_within_blocking(around[1:], context, call, run)
    return result  # noqa: RET504 - it stays None if the block was left by an exception that `first` has caught
