"""What one attempt knows of its job's steps, and how it takes further ones.

Every stored operation of a handler (steps, sleeps, events, polls, children) is written once, as a coroutine over this
class. An async handler awaits it. For a sync handler, `run_without_loop` runs it in the handler's own thread: a
`blocking` journal never suspends, it blocks. So code built on it awaits only the journal's own methods.

The usual shape of such a coroutine:

    key = journal.key("fetch", "ctx.step")              # at the call, so that numbers follow the order of calls
    async with journal.busy():                          # while it is in progress
        record = await journal.find(key, StepKind.CALL) # from an earlier attempt; a changed handler is refused here
        ...
        await journal.save(record)                      # durable when it returns
        await journal.wait(due_at, Parked(...))         # waits here if it is short; else the job is parked
        await journal.park(Parked(...))                 # parks the job: this never returns
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from contextvars import ContextVar
from datetime import datetime, timedelta
from typing import Any, Final, NoReturn, Protocol, TypeVar

from msgspec.structs import replace

from perdure.domain.flows.flow import Progress, StepKind, StepRecord, StepState, StepWrite
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.outcome import Parked
from perdure.errors import ArgumentError, ConflictError, StepError
from perdure.events import Event
from perdure.flows.park import Park, merged
from perdure.flows.recorder import Recorder
from perdure.lifecycle.bridges.from_thread import result_of
from perdure.policy.failures import storable
from perdure.policy.retries.jitter import Randomness
from perdure.policy.retries.triage import Triage
from perdure.policy.secrets.redaction import known_secrets, redact_text
from perdure.storage.port import Store

Result = TypeVar("Result")

NAME_LIMIT_CHARACTERS: Final = 200
NOTE_LIMIT_CHARACTERS: Final = 500
WARNINGS_KEPT: Final = 100
_LOOP_TURNS_WAITED: Final = 10
_NOTHING: Final = timedelta(0)
_WORDS: Final = {
    StepKind.CALL: "a call (ctx.step)",
    StepKind.SLEEP: "a sleep (ctx.sleep)",
    StepKind.EVENT: "a wait for an event (ctx.wait_for, ctx.approval)",
    StepKind.POLL: "a poll (ctx.poll)",
    StepKind.FAMILY: "children (ctx.spawn, ctx.gather)",
}

INSIDE: Final[ContextVar[str | None]] = ContextVar("perdure_step", default=None)
"""The step whose function is running, if any: no other stored operation can be called inside it."""


class StopSignal(Protocol):
    """How an attempt learns that it should end."""

    @property
    def is_raised(self) -> bool:
        """Whether the worker is closing, or the attempt must end."""

    def calling(self, call: Callable[[], object]) -> AbstractContextManager[None]:
        """Call this as soon as that is so."""


class Effects(Protocol):
    """The transaction of a handler."""

    @property
    def is_open(self) -> bool:
        """Whether it has begun."""

    def keep(self, write: StepWrite) -> None:
        """Commit this step with everything else, or not at all."""


class Journal:
    """The steps of one attempt. `started` is when it began on the recorder's monotonic clock.

    Its constructor takes seven values, of which `claim`, `started` and `blocking` are facts about the attempt.
    """

    def __init__(
        self,
        claim: Claim,
        recorder: Recorder,
        stop_signal: StopSignal,
        *,
        started: float,
        blocking: bool,
        triage: Triage | None,
        random: Randomness,
    ) -> None:
        self.claim = claim
        self.recorder = recorder
        self.stop_signal = stop_signal
        self.blocking = blocking
        self.triage = triage
        self.random = random
        self.spawned = False  # set when children are spawned: the transition must record it
        self.parked: Park | None = None
        self.effects: Effects | None = None
        self.has_new_progress = False  # its progress is to be written, and the recorder knows
        self._started = started
        self._names: Counter[str] = Counter()
        self._named: dict[str, str] = {}
        self._records: dict[str, StepRecord] | None = None
        self._asked: set[str] = set()
        self._warnings: dict[str, str] = {}
        self._unkept_warnings = 0
        self._busy = 0
        self._wishes: list[Parked] = []
        self._stirred: asyncio.Event | None = None
        self._progress: tuple[float, float | None, str | None] | None = None

    @property
    def now(self) -> datetime:
        """The database's clock: its time at the claim, plus the time measured here."""
        return self.claim.claimed_at + timedelta(seconds=self.recorder.clock.monotonic() - self._started)

    def key(self, name: str, call: str, *, prefix: str = "", field: str = "name") -> str:
        """The key of the next step of this name: `fetch`, then `fetch#2`; refused inside the function of a step.

        `call` is the handler's call, and `field` its name for the parameter, for the message.
        """
        what = "a step cannot hold another one" if call == "ctx.step" else "waits belong to the handler itself"
        self.refuse_inside(call, f"{what}: write it before or after that step")
        checked_name(field, name)
        name = prefix + name
        self._names[name] += 1
        used = self._names[name]
        key = name if used == 1 else f"{name}#{used}"
        self._named[key] = call
        return key

    def refuse_inside(self, call: str, why: str) -> None:
        """Refuse a call inside the function of a step."""
        if (inside := INSIDE.get()) is not None:
            raise StepError(inside, f"holds {call}, and {why}")

    @asynccontextmanager
    async def busy(self) -> AsyncIterator[None]:
        """One call in progress; a park of this attempt waits for all others."""
        if self.parked is not None:
            raise self.parked
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1
            self._stir()

    async def find(self, key: str, kind: StepKind) -> StepRecord | None:
        """The stored step of this key; None: none yet. Refuses a step of another kind: the handler has changed."""
        if self._records is None:
            loaded = await self.reach(self.recorder.load(self.claim.job_id))
            if self._records is None:  # else another call has loaded them meanwhile
                self._records = {record.key: record for record in loaded}
        self._asked.add(key)
        record = self._records.get(key)
        if record is not None and record.kind is not kind:
            raise StepError(
                key,
                f"was stored as {_WORDS[record.kind]} and is now {_WORDS[kind]}: the handler was changed while this job"
                " was under way; give the new step another name, or enqueue the job again",
            )
        return record

    async def save(self, record: StepRecord) -> None:
        """Store a step: durable when it returns, or with the handler's transaction. A lost claim stops the attempt."""
        if self.effects is not None and self.effects.is_open:  # elsewhere it would survive a rollback
            self.effects.keep(StepWrite(self.claim, record))
        else:
            await self.reach(self.recorder.save(self.claim, record), to_the_end=True)
        if self._records is not None:
            self._records[record.key] = record

    @property
    def in_transaction(self) -> bool:
        """Whether the handler has an open transaction, with which all stored steps commit or roll back."""
        return self.effects is not None and self.effects.is_open

    async def ask(self, what: str, call: Callable[[Store], Awaitable[Result]]) -> Result:
        """Call the store, retrying while it is away; the call must be safe to repeat."""
        return await self.reach(self.recorder.ask(what, call))

    async def emit(self, event: Event) -> None:
        """Emit an event, on the worker's own event loop."""
        await self.reach(self._emit(event))

    async def _emit(self, event: Event) -> None:
        self.recorder.emitter.emit(event)

    async def reach(self, coroutine: Coroutine[Any, Any, Result], *, to_the_end: bool = False) -> Result:
        """Run a coroutine on the worker's event loop, from the handler's thread or loop."""
        if not self.blocking:
            return await coroutine
        try:
            future = asyncio.run_coroutine_threadsafe(coroutine, self.recorder.loop)
        except RuntimeError:
            coroutine.close()
            raise ConflictError("the worker of this attempt has closed: its job went back to the queue") from None
        return result_of(future, to_the_end=to_the_end)

    async def wait(self, until: datetime, parked: Parked, *, held: timedelta | None = None) -> None:
        """Wait until then: here if it is short, else the job is parked as `parked` says.

        A wait is short up to the recorder's limit, or up to `held` if that is less. If the worker closes, a short wait
        becomes a park.
        """
        left = until - self.now
        if left <= _NOTHING:
            return
        short = self.recorder.short_wait if held is None else min(held, self.recorder.short_wait)
        with self._traced(parked, left):
            if left > short or await self._cut_short(left):
                await self._park(replace(parked, after=max(until - self.now, _NOTHING)))

    async def park(self, parked: Parked) -> NoReturn:
        """Leave the handler: its job is parked, and runs again at its time or when what it awaits arrives.

        Other calls of the attempt in progress (`asyncio.gather`) are waited for, so that no work is done twice; several
        parks become one.
        """
        with self._traced(parked, parked.after):
            await self._park(parked)

    def _traced(self, parked: Parked, span: timedelta | None) -> AbstractContextManager[None]:
        tracer = self.recorder.hooks.tracer
        return nullcontext() if tracer is None else tracer.wait(parked, span)

    async def _park(self, parked: Parked) -> NoReturn:
        self._wishes.append(parked)
        self._stir()
        try:
            if not self.blocking:
                await self._all_others_wait()
        except BaseException:  # told to stop
            self._wishes.remove(parked)
            raise
        if self.parked is None:
            self.parked = Park(merged(self._wishes))
            self._stir()
        raise self.parked

    def error_of(self, key: str) -> str | None:
        """Why a step was given up; None: it was not."""
        if key not in self._asked:
            taken = ", ".join(sorted(self._asked)) or "none"
            raise ArgumentError("name", f"must be that of a step which this attempt has taken ({taken}), got {key!r}")
        record = (self._records or {}).get(key)
        return record.note if record is not None and record.state is StepState.GIVEN_UP else None

    def secrets(self) -> tuple[str, ...]:
        """The secrets in the job's arguments, its metadata and the results of its steps."""
        kept = [record.result for record in (self._records or {}).values()]
        return known_secrets(self.claim.args, self.claim.meta, *kept)

    def without_secrets(self, text: str) -> str:
        """A text that people read, as it may be written."""
        return redact_text(text, self.secrets())

    def warn(self, key: str, warning: str) -> None:
        """Make the job end "done with warnings", if it succeeds; the last warning of each key is kept."""
        if key in self._warnings or len(self._warnings) < WARNINGS_KEPT:
            self._warnings[key] = warning
        else:
            self._unkept_warnings += 1

    def warnings(self) -> tuple[str, ...]:
        """The warnings of a job whose handler has returned: steps given up, not asked for, or never begun."""
        texts, kept = list(self._warnings.values()), self._records or {}
        if self._unkept_warnings:
            texts.append(f"and {self._unkept_warnings} more warnings, of which {WARNINGS_KEPT} are kept")
        if unasked := [key for key in kept if key not in self._asked]:
            texts.append(f"stored steps were not used (was the handler changed?): {', '.join(unasked)}")
        if never := [f"{call} of {key}" for key, call in self._named.items() if key not in self._asked | kept.keys()]:
            texts.append(f"never begun (is an `await` missing?): {', '.join(never)}")
        return tuple(texts)

    def show(self, current: float, total: float | None, note: str | None) -> None:
        """Report progress: remembered here, and written soon."""
        self._progress = current, total, note
        if self.has_new_progress:
            return
        self.has_new_progress = True
        if self.blocking:
            with suppress(RuntimeError):  # the worker has closed: no one reads it any more
                self.recorder.loop.call_soon_threadsafe(self.recorder.note_progress, self)
        else:
            self.recorder.note_progress(self)

    def take_progress(self) -> Progress | None:
        """The progress, if it was reported since the last call."""
        self.has_new_progress = False  # before the read, so that a report from another thread is not missed
        word, self._progress = self._progress, None
        if word is None:
            return None
        current, total, note = word
        said = None if note is None else self.without_secrets(storable(note, NOTE_LIMIT_CHARACTERS))
        return Progress(current=current, total=total, note=said, at=self.now)

    def _stir(self) -> None:
        if self._stirred is not None:
            self._stirred.set()

    async def _all_others_wait(self) -> None:
        """Wait until every other call in progress wants to park, too.

        A task may need a few turns of the event loop to go from one call to its next.
        """
        turns = 0
        while self.parked is None and turns < _LOOP_TURNS_WAITED:
            if self._busy > len(self._wishes):
                self._stirred = self._stirred or asyncio.Event()
                self._stirred.clear()
                await self._stirred.wait()
                turns = 0
            else:
                await asyncio.sleep(0)
                turns += 1

    async def _cut_short(self, span: timedelta) -> bool:
        """Wait here; returns whether the attempt was told to end before the wait was over."""
        seconds = span.total_seconds()
        if self.blocking:
            raised = threading.Event()
            with self.stop_signal.calling(raised.set):
                return raised.wait(seconds)
        loop, stirred = asyncio.get_running_loop(), asyncio.Event()
        with self.stop_signal.calling(lambda: loop.call_soon_threadsafe(stirred.set)), suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await stirred.wait()
        return self.stop_signal.is_raised


def checked_name(field: str, name: object) -> None:
    """Refuse a name that cannot be stored, or would be taken for another."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise ArgumentError(field, f"must be a word or two, got {name!r}")
    if len(name) > NAME_LIMIT_CHARACTERS:
        raise ArgumentError(field, f"must have at most {NAME_LIMIT_CHARACTERS} characters, got {len(name)}")
    if "#" in name:
        raise ArgumentError(field, f"must not contain '#', which numbers repeated names, got {name!r}")
