"""What operators hold and release: pauses of queues and kinds, breakers by hand, and a view of spending."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from perdure.domain.duration import Duration, parse_duration
from perdure.domain.gate import BreakerState, BreakerView, Pause
from perdure.domain.operate.audit import By
from perdure.errors import ArgumentError, ConflictError, NotFoundError
from perdure.kinds.encoding import encode
from perdure.kinds.options import checked_name
from perdure.operate.audit_trail import checked_why
from perdure.operate.commands.foresight import Foreseen, foresee_pause, foresee_resume
from perdure.operate.commands.pause_check import PauseCheck, check_pause
from perdure.operate.wording import listed
from perdure.policy.limits.breaker import close_by_hand, open_by_hand
from perdure.policy.secrets.redaction import is_secret_name, redact_value
from perdure.storage.port import Store

WHY_LIMIT_CHARACTERS: Final = 500
_ARGS_LIMIT_BYTES: Final = 16 * 1024
_ID_BYTES: Final = 4
_BUDGETS_NAMED: Final = 50  # budgets in an error message
_DAY: Final = timedelta(days=1)


class Resumed(Struct, frozen=True):
    """The ended pauses, and how many jobs became ready; jobs of a paused queue were ready before."""

    pauses: tuple[Pause, ...]
    jobs: int


class Spent(Struct, frozen=True, kw_only=True):
    """The amount spent under a budget's name over the last 24 hours, 7 days and 30 days, estimates included."""

    name: str
    daily: float
    weekly: float
    monthly: float


class Holds:
    """Pauses, breakers and spending of an open store, and commands, recorded under `by`."""

    def __init__(self, store: Store, by: By) -> None:
        self._store = store
        self._by = by

    async def pauses(self) -> list[Pause]:
        """The current pauses, oldest first."""
        return await self._store.pauses()

    async def pause(
        self,
        *,
        queue: str | None = None,
        kind: str | None = None,
        args: Mapping[str, Any] | None = None,
        until: datetime | None = None,
        why: str | None = None,
    ) -> Pause:
        """Pause a queue or kind, or jobs with these argument values: until then, or until resumed.

        Running jobs continue. A job must match all given parts: queue and kind together mean that kind in that queue.
        """
        pause = await self._planned(queue, kind, args, until, why)
        await self._store.pause(pause, self._because(pause.why))
        return pause

    async def preview_pause(
        self,
        *,
        queue: str | None = None,
        kind: str | None = None,
        args: Mapping[str, Any] | None = None,
        until: datetime | None = None,
    ) -> Foreseen:
        """The dry run of `pause`: the jobs that it would hold. Nothing is written."""
        return await foresee_pause(self._store, await self._planned(queue, kind, args, until, None))

    async def check_pause(self, pause: Pause) -> PauseCheck:
        """Names in a pause that nothing uses yet, such as misspelt ones, and other pauses that hold the same jobs."""
        return await check_pause(self._store, pause)

    async def _planned(
        self,
        queue: str | None,
        kind: str | None,
        args: Mapping[str, Any] | None,
        until: datetime | None,
        why: str | None,
    ) -> Pause:
        if queue is None and kind is None:
            raise ArgumentError("queue", "or kind must be given: a pause of everything is `perdure quiet --all`")
        if args is not None and kind is None:
            raise ArgumentError("args", "need a kind: only jobs of one kind have the same arguments")
        now = await self._store.now()
        if until is not None and (until.tzinfo is None or until <= now):
            raise ArgumentError("until", f"must be a future time, with its zone, got {until.isoformat()}")
        return Pause(
            id=secrets.token_hex(_ID_BYTES),
            queue=None if queue is None else checked_name("queue", queue),
            kind=None if kind is None else checked_name("kind", kind),
            args=None if args is None else _encoded(args),
            until=until,
            why=_checked_why(why),
            actor=self._by.actor,
            at=now,
        )

    async def resume(
        self,
        ids: str | Iterable[str] = (),
        *,
        queue: str | None = None,
        kind: str | None = None,
        everything: bool = False,
        why: str | None = None,
    ) -> Resumed:
        """End pauses: those with these ids, or all that name this queue, this kind, or both; or everything.

        An unknown id raises NotFoundError, and then nothing is resumed.
        """
        chosen = await self._chosen(ids, queue, kind, everything=everything)
        by = self._because(_checked_why(why))
        jobs = await self._store.resume([pause.id for pause in chosen], by) if chosen else 0
        self._store.ring({pause.queue for pause in chosen if pause.queue is not None})
        return Resumed(chosen, jobs)

    async def preview_resume(
        self,
        ids: str | Iterable[str] = (),
        *,
        queue: str | None = None,
        kind: str | None = None,
        everything: bool = False,
    ) -> Foreseen:
        """The dry run of `resume`: the pauses that it would end, and the held jobs. Nothing is written."""
        return await foresee_resume(self._store, await self._chosen(ids, queue, kind, everything=everything))

    async def _chosen(
        self, ids: str | Iterable[str], queue: str | None, kind: str | None, *, everything: bool
    ) -> tuple[Pause, ...]:
        wanted = _checked_ids(ids)
        ways = [bool(wanted), queue is not None or kind is not None, everything]
        if ways.count(True) != 1:
            raise ArgumentError("id", "of a pause, or a queue or kind, or everything: give one of them, and only one")
        known = await self._store.pauses()
        if missing := [pause_id for pause_id in wanted if not any(pause.id == pause_id for pause in known)]:
            raise NotFoundError(f"there is no pause {listed(missing)}")
        return tuple(pause for pause in known if pause.id in wanted or (not wanted and _names(pause, queue, kind)))

    async def breakers(self) -> list[BreakerView]:
        """All breakers that a job has ever reached, by name."""
        return await self._store.breakers()

    async def open_breaker(self, name: str, *, for_: Duration | None = None, why: str | None = None) -> BreakerView:
        """Open a breaker: until an operator closes it, or for `for_`, after which trial jobs run.

        A breaker that no job has reached yet can be opened too; its name is not checked, since only code knows it.
        """
        view = await self._breaker(checked_name("name", name)) or BreakerView(name=name)
        reason = _checked_why(why)
        now = await self._store.now()
        opened = open_by_hand(view, now, reason, self._by.actor)
        if for_ is not None:
            span = parse_duration("for", for_)
            if not span:
                raise ArgumentError("for", "must be longer than 0; to let jobs through, close the breaker")
            opened = replace(opened, by_hand=False, until=now + span)
        await self._store.set_breaker(opened, self._because(reason))
        return opened

    async def close_breaker(self, name: str, *, why: str | None = None) -> BreakerView:
        """Close a breaker; jobs pass slowly at first. Raises NotFoundError, and ConflictError if it is closed."""
        view = await self._breaker(name)
        if view is None:
            known = listed(repr(breaker.name) for breaker in await self._store.breakers())
            raise NotFoundError(
                f"there is no breaker {name!r}; {f'known are {known}' if known else 'none was met yet'}"
            )
        if view.state is BreakerState.CLOSED:
            raise ConflictError(f"breaker {name!r} is closed already")
        reason = _checked_why(why)
        closed = close_by_hand(view, await self._store.now(), reason, self._by.actor)
        await self._store.set_breaker(closed, self._because(reason))
        return closed

    async def budgets(self) -> list[Spent]:
        """What was spent under each budget's name, by name, of 50 budgets at most."""
        return [await self.spent(name) for name in sorted(await self._store.budgets(_BUDGETS_NAMED))]

    async def spent(self, name: str) -> Spent:
        """The amount spent under a budget's name; if there is none, raises NotFoundError, naming known budgets."""
        checked_name("name", name)
        now = await self._store.now()
        daily, weekly, monthly = [await self._store.spent(name, now - days * _DAY) for days in (1, 7, 30)]
        if not monthly:
            known = await self._store.budgets(_BUDGETS_NAMED)
            if name not in known:
                others = f"known are {listed(map(repr, known))}" if known else "no budget has spent anything yet"
                raise NotFoundError(f"nothing was spent under the name {name!r} in the last month; {others}")
        return Spent(name=name, daily=daily, weekly=weekly, monthly=monthly)

    def _because(self, why: str | None) -> By:
        return replace(self._by, why=why)

    async def _breaker(self, name: str) -> BreakerView | None:
        return next((breaker for breaker in await self._store.breakers() if breaker.name == name), None)


def _checked_ids(ids: str | Iterable[str]) -> list[str]:
    given = [ids] if isinstance(ids, str) or not isinstance(ids, Iterable) else list(ids)
    if odd := [pause_id for pause_id in given if not isinstance(pause_id, str)]:
        raise ArgumentError("id", f"of a pause must be text, got {odd[0]!r:.100}")
    return list(dict.fromkeys(given))


def _names(pause: Pause, queue: str | None, kind: str | None) -> bool:
    """Whether a pause names this queue and this kind; None matches any."""
    return queue in {None, pause.queue} and kind in {None, pause.kind}


def _encoded(args: Mapping[str, Any]) -> str:
    if not isinstance(args, Mapping) or not args or not all(isinstance(name, str) for name in args):
        raise ArgumentError("args", f'must give arguments by name, as {{"tenant": 7}}, got {args!r:.100}')
    if hidden := [name for name, value in args.items() if is_secret_name(name) or redact_value(value) != value]:
        raise ArgumentError("args", f"must not hold {hidden[0]!r}, a secret, since pauses are shown: use another one")
    try:
        text = encode(dict(args))
    except (TypeError, ValueError, NotImplementedError, OverflowError, RecursionError) as error:
        raise ArgumentError("args", f"cannot be written as JSON: {error}") from error
    if len(text.encode()) > _ARGS_LIMIT_BYTES:
        raise ArgumentError("args", f"take {len(text.encode())} bytes, {_ARGS_LIMIT_BYTES} are allowed: name fewer")
    return text


def _checked_why(why: str | None) -> str | None:
    known = checked_why(why)
    if known is not None and len(known) > WHY_LIMIT_CHARACTERS:
        raise ArgumentError("why", f"has {len(known)} characters, {WHY_LIMIT_CHARACTERS} are allowed")
    return known
