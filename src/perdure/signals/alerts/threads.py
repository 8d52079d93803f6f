"""Calls of blocking libraries, each in a thread of its own; the worker stops waiting at a deadline."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from perdure.signals.alerts.errors import DeliveryFailed

R = TypeVar("R")


async def in_thread(call: Callable[[], R], *, seconds: float, give_up: Callable[[], None] = lambda: None) -> R:
    """Run a blocking call in a daemon thread; raises DeliveryFailed at the deadline, after `give_up`.

    `give_up` should make the call end, as by closing its connection: a thread cannot be stopped.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[R] = loop.create_future()

    def settle(result: R | None, error: BaseException | None) -> None:
        if answer.done():
            return
        if error is None:
            answer.set_result(result)  # type: ignore[arg-type] # None only if the call returns it
        else:
            answer.set_exception(error)

    def run() -> None:
        result: R | None = None
        failure: BaseException | None = None
        try:
            result = call()
        except Exception as error:  # noqa: BLE001 - it is raised to the handler that waits
            failure = error
        with suppress(RuntimeError):  # the event loop is closed, and no handler waits
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=run, name="perdure-alert", daemon=True).start()
    try:
        async with asyncio.timeout(seconds):
            return await answer
    except TimeoutError:
        raise DeliveryFailed(f"did not answer within {seconds:g} s") from None
    finally:
        if answer.cancelled() or not answer.done():
            give_up()
