"""The desk for callers without an event loop: the same methods, which block.

Each name stands for the method of the async class, with its parameters and its answer: nothing is said twice.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from perdure.operate.commands.calendar import Calendar
from perdure.operate.commands.holds import Holds
from perdure.operate.desk import Desk

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Host(Protocol):
    """What a sync desk needs of its app."""

    async def desk(self, actor: str) -> Desk:
        """The desk of the running loop."""

    def run_sync(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine to its end."""


class _Part(Generic[T_co]):
    """A desk, or a part of it, that is asked for anew by each call: so it outlives `close_sync` and a fork."""

    def __init__(self, host: Host, actor: str, of: Callable[[Desk], T_co]) -> None:
        self._host = host
        self._actor = actor
        self._of = of

    def _do(self, method: Callable[..., Coroutine[Any, Any, R]], *args: Any, **kwargs: Any) -> R:
        async def work() -> R:
            return await method(self._of(await self._host.desk(self._actor)), *args, **kwargs)

        return self._host.run_sync(work())


class _Blocking(Generic[T, P, R]):
    """A method of `T`, called from a `_Part` of it."""

    def __init__(self, method: Callable[Concatenate[T, P], Coroutine[Any, Any, R]]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, part: None, owner: type) -> Self: ...

    @overload
    def __get__(self, part: _Part[T], owner: type) -> Callable[P, R]: ...

    def __get__(self, part: _Part[T] | None, owner: type) -> Self | Callable[P, R]:
        """The method of this part, which blocks until it is done."""
        if part is None:
            return self

        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            return part._do(self._method, *args, **kwargs)  # noqa: SLF001 - the two are one

        return wraps(self._method)(call)


class SyncCalendar(_Part[Calendar]):
    """The schedules, and what can be done to them."""

    schedules = _Blocking(Calendar.schedules)
    details = _Blocking(Calendar.details)
    schedule = _Blocking(Calendar.schedule)
    save = _Blocking(Calendar.save)
    pause = _Blocking(Calendar.pause)
    resume = _Blocking(Calendar.resume)
    delete = _Blocking(Calendar.delete)
    trigger = _Blocking(Calendar.trigger)
    backfill = _Blocking(Calendar.backfill)
    nominal_times = _Blocking(Calendar.nominal_times)


class SyncHolds(_Part[Holds]):
    """Pauses, breakers and spending, and what can be done to them."""

    pauses = _Blocking(Holds.pauses)
    pause = _Blocking(Holds.pause)
    resume = _Blocking(Holds.resume)
    breakers = _Blocking(Holds.breakers)
    open_breaker = _Blocking(Holds.open_breaker)
    close_breaker = _Blocking(Holds.close_breaker)
    spent = _Blocking(Holds.spent)


class SyncDesk(_Part[Desk]):
    """The operator's desk, for callers without an event loop: every method blocks until it is done."""

    def __init__(self, host: Host, actor: str) -> None:
        super().__init__(host, actor, lambda desk: desk)
        self.actor = actor

    @property
    def calendar(self) -> SyncCalendar:
        """The schedules, and what can be done to them."""
        return SyncCalendar(self._host, self.actor, lambda desk: desk.calendar)

    @property
    def holds(self) -> SyncHolds:
        """Pauses and breakers, and what can be done to them."""
        return SyncHolds(self._host, self.actor, lambda desk: desk.holds)

    now = _Blocking(Desk.now)
    job = _Blocking(Desk.job)
    why = _Blocking(Desk.why)
    jobs = _Blocking(Desk.jobs)
    children = _Blocking(Desk.children)
    steps = _Blocking(Desk.steps)
    job_by_ref = _Blocking(Desk.job_by_ref)
    meaning = _Blocking(Desk.meaning)
    count = _Blocking(Desk.count)
    count_by = _Blocking(Desk.count_by)
    overdue = _Blocking(Desk.overdue)
    audit = _Blocking(Desk.audit)
    record = _Blocking(Desk.record)
    mark = _Blocking(Desk.mark)
    dead_letters = _Blocking(Desk.dead_letters)
    overview = _Blocking(Desk.overview)
    workers = _Blocking(Desk.workers)
    cancel = _Blocking(Desk.cancel)
    requeue = _Blocking(Desk.requeue)
    answer = _Blocking(Desk.answer)
    approvals = _Blocking(Desk.approvals)
    asks = _Blocking(Desk.asks)
    emit = _Blocking(Desk.emit)
    run_now = _Blocking(Desk.run_now)
    reschedule = _Blocking(Desk.reschedule)
    quiet = _Blocking(Desk.quiet)
    purge = _Blocking(Desk.purge)
    delete = _Blocking(Desk.delete)
    preview = _Blocking(Desk.preview)
    act = _Blocking(Desk.act)
