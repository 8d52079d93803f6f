"""A store that is asked each question once: for one look at it, such as a page.

What one page shows is made of parts, and several parts ask the same: who the workers are, what time it is. Here they
share the answer, also while it is under way. Commands, and questions with arguments that have no hash, are passed on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from functools import wraps
from typing import Any, cast

from perdure.storage.port import Store
from perdure.storage.time_limits import QUESTIONS


def asked_once(store: Store) -> Store:
    """The same store for one look, which changes nothing."""
    return cast("Store", _AskedOnce(store))


class _AskedOnce:
    """Passes calls on; an equal question gets the same answer, or the same error."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._asked: dict[Hashable, asyncio.Task[Any]] = {}

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if name not in QUESTIONS:
            return method

        @wraps(method)
        async def ask(*args: Any, **kwargs: Any) -> Any:
            question = name, args, tuple(sorted(kwargs.items()))
            try:
                task = self._asked.get(question)
            except TypeError:
                return await method(*args, **kwargs)
            if task is None:
                task = self._asked[question] = asyncio.create_task(method(*args, **kwargs))
            return await asyncio.shield(task)

        return ask
