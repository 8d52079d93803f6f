"""`ctx.poll`: ask an outside system repeatedly until it has an answer, without occupying a worker.

The waits follow a table with jitter; the last wait of a round is clipped to the round's end and followed by one last
poll, so that with 5 s, 15 s, 45 s, 2 min, 5 min within 10 min there are seven: at 0, 5, 20, 65, 185, 485 and 600 s
(D4). Then the job rests, and a new round begins. Round and count are stored before every wait, so that a restart
continues where it was (D5).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from perdure.domain.duration import LONGEST_DURATION, Duration, parse_duration
from perdure.domain.flows.flow import StepKind, StepRecord, StepState
from perdure.domain.jobs import verdicts
from perdure.domain.jobs.outcome import Parked
from perdure.domain.jobs.states import Reason
from perdure.errors import ArgumentError, PollTimeout
from perdure.flows.calling import Calling
from perdure.flows.journal import Journal
from perdure.flows.results import read, reader, written
from perdure.kinds.encoding import encode
from perdure.policy.failures import MESSAGE_LIMIT_CHARACTERS, failure_of, storable
from perdure.policy.retries.backoff import Backoff
from perdure.policy.retries.jitter import Jitter, Randomness
from perdure.policy.retries.retry import Retry
from perdure.policy.retries.triage import Triage, judged

EVERY: Final = Backoff.table("5s", "15s", "45s", "2m", "5m")
JITTER: Final = Jitter.ratio(0.2)
DEFAULT_WITHIN: Final = timedelta(minutes=10)
WAITED_IN_PLACE: Final = timedelta(seconds=1)  # the table's first wait of 5 s must not occupy a worker (D5)
_NOTHING: Final = timedelta(0)


class Then(StrEnum):
    """What follows a round that ended without an answer."""

    ROUND = "round"  # another one, after a rest
    RAISE = "raise"  # PollTimeout


class Round(Struct, frozen=True):
    """The state of a poll: stored as the result of its step until there is one. `began` None: with the next poll."""

    number: int = 1
    began: datetime | None = None
    polls: int = 0


class Plan:
    """How often to poll, and for how long."""

    def __init__(
        self,
        every: Backoff = EVERY,
        jitter: Jitter = JITTER,
        within: Duration = DEFAULT_WITHIN,
        rest: Duration | None = None,
        deadline: Duration | datetime | None = None,
        then: Then | str = Then.ROUND,
    ) -> None:
        if not isinstance(every, Backoff):
            raise ArgumentError("every", f'must be a Backoff such as Backoff.table("5s", "15s"), got {every!r}')
        if not isinstance(jitter, Jitter):
            raise ArgumentError("jitter", f"must be a Jitter such as Jitter.ratio(0.2), got {jitter!r}")
        span = parse_duration("within", within)
        if not span:
            raise ArgumentError("within", "must leave time for a round of polls, got 0s")
        self._retry = Retry(attempts=None, backoff=every, jitter=jitter, within=span)
        self._rest = None if rest is None else parse_duration("rest", rest)
        if isinstance(deadline, datetime) and deadline.tzinfo is None:
            raise ArgumentError("deadline", f"must say its time zone, got {deadline!r}; use datetime.now(UTC) + …")
        self._deadline = (
            deadline if deadline is None or isinstance(deadline, datetime) else parse_duration("deadline", deadline)
        )
        if then not in tuple(Then):
            raise ArgumentError("then", f'must be "round" or "raise", got {then!r}')
        self._then = Then(then)

    def after(self, record: StepRecord, journal: Journal, error: Exception, asked: timedelta | None) -> StepRecord:
        """The step after one more poll without an answer; without a due time, PollTimeout is due."""
        now, this = journal.now, _round_of(record)
        began, polls = this.began or now, this.polls + 1
        record = replace(record, tries=record.tries + 1, note=journal.without_secrets(_noted(error)), due_at=None)
        wanted = self._wanted(polls - 1, journal.random, asked, is_own_word=_is_own_wait(error))
        wait = self._retry.wait(polls - 1, now - began, journal.random, wanted)
        if wait is not None:
            due, then = now + wait, Round(this.number, began, polls)
        elif self._then is Then.RAISE:
            return replace(record, result=encode(Round(this.number + 1)))
        else:
            rest = self._retry.backoff.wait(polls) if self._rest is None else self._rest
            due = now + max(rest, asked or _NOTHING)
            then = Round(this.number + 1, due)
        last = self._last_moment(record)
        if last is not None:
            if now >= last:
                return replace(record, result=encode(Round(this.number + 1)))
            due = min(due, last)
        return replace(record, due_at=due, result=encode(then))

    def _wanted(
        self, polls_before: int, random: Randomness, asked: timedelta | None, *, is_own_word: bool
    ) -> timedelta:
        """The wait before the next poll, before it is clipped to the round.

        A wait that the function itself names is used as it is. An outside system can only lengthen the table's waits:
        one that always says "at once" is not polled more often (D11).
        """
        if asked and is_own_word:
            return asked
        return max(self._retry.jitter.apply(self._retry.backoff.wait(polls_before), random), asked or _NOTHING)

    def _last_moment(self, record: StepRecord) -> datetime | None:
        return record.begun_at + self._deadline if isinstance(self._deadline, timedelta) else self._deadline


async def poll(journal: Journal, key: str, calling: Calling, plan: Plan) -> Any:
    """The final result of the function: stored, or polled for until it is there."""
    async with journal.busy():
        record = await journal.find(key, StepKind.POLL)
        reader(key, calling.function)  # refuse an unreadable type before the first poll
        while record is None or record.state is StepState.BEGUN:
            if record is None:
                record = StepRecord(key=key, kind=StepKind.POLL, state=StepState.BEGUN, begun_at=journal.now)
            elif record.due_at is not None:
                note = f"{key}, poll {record.tries}: {record.note}"
                await journal.wait(record.due_at, Parked(Reason.STILL_PENDING.value, note=note), held=WAITED_IN_PLACE)
            record = await _polled(journal, key, calling, plan, record)
        return read(key, record.result, calling.function)


async def _polled(journal: Journal, key: str, calling: Calling, plan: Plan, record: StepRecord) -> StepRecord:
    if _round_of(record).began is None:
        record = replace(record, result=encode(replace(_round_of(record), began=journal.now)))
    try:
        result = await calling.once(journal)
    except Exception as error:
        is_pending, asked = _asked(error, journal.triage, journal.now)
        if not is_pending:  # counted, and polled again at once if the job has another attempt
            await journal.save(
                replace(record, tries=record.tries + 1, note=journal.without_secrets(_noted(error)), due_at=None)
            )
            raise
        record = plan.after(record, journal, error, asked)
        await journal.save(record)
        if record.due_at is None:
            raise PollTimeout(key, record.tries, record.note or "") from error
        return record
    text = written(key, result)
    read(key, text, calling.function)
    record = replace(record, state=StepState.DONE, result=text, tries=record.tries + 1, due_at=None)
    await journal.save(record)
    return record


def _asked(error: Exception, triage: Triage | None, now: datetime) -> tuple[bool, timedelta | None]:
    """Whether a poll is pending, and the requested wait; an error with any other meaning is final (D3).

    If the job's triage has no opinion, the triage for HTTP clients is asked.
    """
    verdict = judged(error, triage) or judged(error, _http_triage())
    if isinstance(verdict, verdicts.Pending | verdicts.RetryAfter):
        return True, verdict.after(now)
    return False, None


def _is_own_wait(error: Exception) -> bool:
    """Whether the function itself named the wait. A wait with a bound was requested from outside (`HttpTriage`)."""
    return isinstance(error, verdicts.Verdict) and getattr(error, "at_most", LONGEST_DURATION) == LONGEST_DURATION


def _noted(error: Exception) -> str:
    return storable(_said(error), MESSAGE_LIMIT_CHARACTERS)


def _said(error: Exception) -> str:
    if isinstance(error, verdicts.Verdict):
        return str(error) or "no answer yet"
    return str(failure_of(error))


def _http_triage() -> Callable[[BaseException], verdicts.Verdict | None]:
    from perdure.policy.retries.http import HttpTriage  # noqa: PLC0415 - slow to load, and few poll

    return HttpTriage(polling=True)


def _round_of(record: StepRecord) -> Round:
    return Round() if record.result is None else msgspec.json.decode(record.result, type=Round)
