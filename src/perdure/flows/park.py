"""How a waiting attempt ends: an exception leaves its handler, which runs again when the wait is over.

`Park` is not an `Exception`, so that a handler's `except Exception` lets it through; `finally` and `with` blocks run as
usual. Several waits at once (`asyncio.gather`) park together: see `merged`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Final

from msgspec.structs import replace

from perdure.domain.jobs.outcome import Parked

AWAITED_LIMIT: Final = 100
"""The most things that wake a job directly; the first to arrive wakes it."""

LOOK_AROUND_EVERY: Final = timedelta(seconds=30)
"""How often a job that waits for more things checks the others."""


class Park(BaseException):
    """Leaves a handler whose job is to wait; `parked` says for what."""

    def __init__(self, parked: Parked) -> None:
        super().__init__(parked.reason)
        self.parked = parked


def merged(wishes: Iterable[Parked]) -> Parked:
    """One park for all of these: until the first of their times, or until one of the awaited things arrives."""
    first, *others = wishes
    if not others:
        return first
    times = [wish.after for wish in (first, *others) if wish.after is not None]
    awaited = tuple(dict.fromkeys(thing for wish in (first, *others) for thing in wish.awaits))
    if len(awaited) > AWAITED_LIMIT:
        times.append(LOOK_AROUND_EVERY)
    shown = next((wish for wish in (first, *others) if wish.awaits), first)
    return replace(shown, after=min(times, default=None), also=awaited[1:AWAITED_LIMIT])


def parked_in(error: BaseException) -> Parked | None:
    """What a handler waits for that was left by this; None: it was left for another reason.

    A group, as task groups make them, is a park if it contains only parks, and tasks that were cancelled for them.
    """
    if isinstance(error, Park):
        return error.parked
    if not isinstance(error, BaseExceptionGroup):
        return None
    leaves = [leaf for leaf in _leaves(error) if not isinstance(leaf, asyncio.CancelledError)]
    parks = [leaf.parked for leaf in leaves if isinstance(leaf, Park)]
    return merged(parks) if parks and len(parks) == len(leaves) else None


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
