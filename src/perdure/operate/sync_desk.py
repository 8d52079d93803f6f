"""The desk for callers without an event loop: the same methods, which block.

Each name refers to the method of the async class, with its parameters and its result: nothing is written twice.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from perdure.operate.alerts.commands import Alerts
from perdure.operate.commands.calendar import Calendar
from perdure.operate.commands.feed import Feed
from perdure.operate.commands.holds import Holds
from perdure.operate.commands.webhooks import Webhooks
from perdure.operate.desk import Desk

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Host(Protocol):
    """What a sync desk needs from its app."""

    async def desk(self, actor: str, source: str = "code") -> Desk:
        """The desk of the running loop."""

    def run_sync(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine to its end."""


class _Part(Generic[T_co]):
    """A desk, or a part of it, that each call opens again: so it survives `close_sync` and a fork."""

    def __init__(self, host: Host, actor: str, source: str, of: Callable[[Desk], T_co]) -> None:
        self._host = host
        self._actor = actor
        self._source = source
        self._of = of

    def _do(self, method: Callable[..., Coroutine[Any, Any, R]], *args: Any, **kwargs: Any) -> R:
        async def work() -> R:
            return await method(self._of(await self._host.desk(self._actor, self._source)), *args, **kwargs)

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
    """The schedules, and commands for them."""

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
    """Pauses, breakers and spending, and commands for them."""

    pauses = _Blocking(Holds.pauses)
    pause = _Blocking(Holds.pause)
    preview_pause = _Blocking(Holds.preview_pause)
    check_pause = _Blocking(Holds.check_pause)
    resume = _Blocking(Holds.resume)
    preview_resume = _Blocking(Holds.preview_resume)
    breakers = _Blocking(Holds.breakers)
    open_breaker = _Blocking(Holds.open_breaker)
    close_breaker = _Blocking(Holds.close_breaker)
    budgets = _Blocking(Holds.budgets)
    spent = _Blocking(Holds.spent)


class SyncFeed(_Part[Feed]):
    """The event log that other programs follow."""

    state = _Blocking(Feed.state)
    switch_on = _Blocking(Feed.switch_on)
    switch_off = _Blocking(Feed.switch_off)
    events = _Blocking(Feed.events)


class SyncWebhooks(_Part[Webhooks]):
    """Webhooks, and commands for them."""

    webhooks = _Blocking(Webhooks.webhooks)
    webhook = _Blocking(Webhooks.webhook)
    retrying = _Blocking(Webhooks.retrying)
    save = _Blocking(Webhooks.save)
    new_secret = _Blocking(Webhooks.new_secret)
    pause = _Blocking(Webhooks.pause)
    resume = _Blocking(Webhooks.resume)
    delete = _Blocking(Webhooks.delete)
    test = _Blocking(Webhooks.test)


class SyncAlerts(_Part[Alerts]):
    """Rules, channels and alerts, and commands for them."""

    rules = _Blocking(Alerts.rules)
    rule = _Blocking(Alerts.rule)
    save = _Blocking(Alerts.save)
    pause = _Blocking(Alerts.pause)
    resume = _Blocking(Alerts.resume)
    delete = _Blocking(Alerts.delete)
    channels = _Blocking(Alerts.channels)
    channel = _Blocking(Alerts.channel)
    save_channel = _Blocking(Alerts.save_channel)
    delete_channel = _Blocking(Alerts.delete_channel)
    open = _Blocking(Alerts.open)
    history = _Blocking(Alerts.history)
    notices = _Blocking(Alerts.notices)
    notice = _Blocking(Alerts.notice)
    preview = _Blocking(Alerts.preview)
    test = _Blocking(Alerts.test)


class SyncDesk(_Part[Desk]):
    """The operator's desk, for callers without an event loop: every method blocks until it is done."""

    def __init__(self, host: Host, actor: str, source: str = "code") -> None:
        super().__init__(host, actor, source, lambda desk: desk)
        self.actor = actor
        self.source = source

    @property
    def calendar(self) -> SyncCalendar:
        """The schedules, and commands for them."""
        return SyncCalendar(self._host, self.actor, self.source, lambda desk: desk.calendar)

    @property
    def holds(self) -> SyncHolds:
        """Pauses, breakers and spending, and commands for them."""
        return SyncHolds(self._host, self.actor, self.source, lambda desk: desk.holds)

    @property
    def feed(self) -> SyncFeed:
        """The event log that other programs follow."""
        return SyncFeed(self._host, self.actor, self.source, lambda desk: desk.feed)

    @property
    def webhooks(self) -> SyncWebhooks:
        """Webhooks, and commands for them."""
        return SyncWebhooks(self._host, self.actor, self.source, lambda desk: desk.webhooks)

    @property
    def alerts(self) -> SyncAlerts:
        """Rules, channels and alerts, and commands for them."""
        return SyncAlerts(self._host, self.actor, self.source, lambda desk: desk.alerts)

    now = _Blocking(Desk.now)
    job = _Blocking(Desk.job)
    why = _Blocking(Desk.why)
    jobs = _Blocking(Desk.jobs)
    children = _Blocking(Desk.children)
    children_of = _Blocking(Desk.children_of)
    fates_of = _Blocking(Desk.fates_of)
    flows = _Blocking(Desk.flows)
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
    attention = _Blocking(Desk.attention)
    database_problems = _Blocking(Desk.database_problems)
    statistics = _Blocking(Desk.statistics)
    compare = _Blocking(Desk.compare)
    queues = _Blocking(Desk.queues)
    kinds = _Blocking(Desk.kinds)
    limits = _Blocking(Desk.limits)
    failure_groups = _Blocking(Desk.failure_groups)
    failure_group = _Blocking(Desk.failure_group)
    filter = _Blocking(Desk.filter)
    suggestions = _Blocking(Desk.suggestions)
    overview = _Blocking(Desk.overview)
    workers = _Blocking(Desk.workers)
    cancel = _Blocking(Desk.cancel)
    requeue = _Blocking(Desk.requeue)
    enqueue = _Blocking(Desk.enqueue)
    answer = _Blocking(Desk.answer)
    approvals = _Blocking(Desk.approvals)
    asks = _Blocking(Desk.asks)
    emit = _Blocking(Desk.emit)
    run_now = _Blocking(Desk.run_now)
    reschedule = _Blocking(Desk.reschedule)
    quiet = _Blocking(Desk.quiet)
    purge = _Blocking(Desk.purge)
    delete = _Blocking(Desk.delete)
    tokens = _Blocking(Desk.tokens)
    create_token = _Blocking(Desk.create_token)
    revoke_token = _Blocking(Desk.revoke_token)
    check_token = _Blocking(Desk.check_token)
    preview = _Blocking(Desk.preview)
    plan = _Blocking(Desk.plan)
    start_bulk = _Blocking(Desk.start_bulk)
    bulk = _Blocking(Desk.bulk)
    bulks = _Blocking(Desk.bulks)
    stop_bulk = _Blocking(Desk.stop_bulk)
    act = _Blocking(Desk.act)
