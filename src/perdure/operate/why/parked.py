"""What a parked job waits for, in words: its reason gives the type, and the store the details."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from shlex import quote
from typing import Final

from msgspec.structs import replace

from perdure.domain.gate import BreakerState, BreakerView, Pause
from perdure.domain.jobs.job import JobView
from perdure.domain.jobs.states import JobState, Reason
from perdure.operate.records import Remedy, Why
from perdure.operate.why.awaited import awaits_children, awaits_event
from perdure.operate.wording import some, utc_text
from perdure.policy.limits.pausing import PAUSE_NOTE
from perdure.storage.port import Store

_WAITS: Final = {
    Reason.SNOOZED: "Its handler asked to be run again later.",
    Reason.STILL_PENDING: "It polls, and the result was not ready yet.",
    Reason.SLEEPING: "It sleeps, as its handler asked.",
    Reason.STEP_FAILED: "One of its steps failed and is retried later.",
    Reason.RATE_LIMITED: "Its rate limit is reached.",
    Reason.BUDGET_EXCEEDED: "Its budget is spent.",
    Reason.CONCURRENCY_REACHED: "Its concurrency limit is reached.",
    Reason.RELEASED: "Its worker gave it back; a worker claims it again later.",
    Reason.PAUSED: "Its handler paused it.",
    Reason.ON_HOLD: "It was on hold for a pause that is over: it comes back in a moment.",
}
_HURRIED_BY_GATES: Final = "it goes on by itself; raise the limit in code if that is too slow"
_ADVICE: Final = {
    Reason.RATE_LIMITED: _HURRIED_BY_GATES,
    Reason.CONCURRENCY_REACHED: _HURRIED_BY_GATES,
    Reason.BUDGET_EXCEEDED: "it goes on by itself once enough time has passed; `perdure spent {name}` shows the sums",
}
_LOOKS_AGAIN: Final = frozenset({Reason.BUDGET_EXCEEDED, Reason.CONCURRENCY_REACHED})
"""Holds whose next look is not the end of the wait: whether the gate lets the job through is decided then."""


def is_looked_at_again(job: JobView) -> bool:
    """Whether a parked job's `due_at` is only the next look at its gate, which may hold it again."""
    return any(_is_for(job, reason) for reason in _LOOKS_AGAIN)


async def parked(store: Store, job: JobView, now: datetime, *, pauses: Sequence[Pause], is_alone: bool) -> Why:
    """Why a parked job is not running. `pauses` are those that apply to it; `is_alone`: no worker is running."""
    reason = next((known for known in Reason if _is_for(job, known)), None)
    if reason is Reason.ON_HOLD and pauses:
        own = [pause for pause in pauses if (_note(job) or "").startswith(f"{PAUSE_NOTE}{pause.id}")]
        return held_by((own or pauses)[0], job)
    special = _SPECIAL.get(reason) if reason else None
    found = await special(store, job) if special else _plain(job, reason)
    facts = list(found.facts)
    if job.last_error is not None and job.state is not JobState.RETRYING:
        facts.append(f"It has failed before: {job.last_error}")
    facts += [f"Pause {pause.id} will hold it back when it is due." for pause in pauses]
    if job.due_at is None or job.due_at > now:
        return replace(found, facts=tuple(facts))
    facts = [found.answer, *facts]
    if is_alone:
        answer, advice = (
            "It is due, and no worker is running to make it ready.",
            "start one: perdure worker your_module:app",
        )
    else:
        answer, advice = "It is due: a worker makes it ready in a moment.", "look again"
    return replace(found, answer=answer, facts=tuple(facts), what_to_do=advice)


def held_by(pause: Pause, job: JobView) -> Why:
    """A job that an operator's pause holds."""
    what = " and ".join(f"{word} {name!r}" for word, name in (("queue", pause.queue), ("kind", pause.kind)) if name)
    facts = [f"It was paused by {pause.actor} at {utc_text(pause.at)}{f': {pause.why}' if pause.why else '.'}"]
    if pause.args is not None:
        facts.append(f"It applies only to jobs with these arguments: {pause.args}")
    return Why(
        job=job,
        answer=f"An operator has paused {what} (pause {pause.id}).",
        facts=tuple(facts),
        until=pause.until,
        what_to_do=f"perdure resume {pause.id}",
        remedy=Remedy("resume", pause.id, "Resume"),
    )


def _plain(job: JobView, reason: Reason | None) -> Why:
    note = _note(job)
    facts = [f"Noted: {note}"] if note and reason else []
    match job.state:
        case JobState.SCHEDULED:
            answer = "It is scheduled for later."
        case JobState.RETRYING:
            number = job.failures + job.crashes
            of = f" of {job.max_attempts + job.crashes}" if job.max_attempts else ""  # a crash uses none of them
            answer = f"Attempt {number} did not succeed; attempt {number + 1}{of} comes later."
            facts.append(f"The last error was {job.last_error}")
        case _:
            answer = _WAITS.get(reason, "") if reason else ""
            answer = answer or f"It is {job.state}: {job.reason}."
    advice = (_ADVICE.get(reason) if reason else None) or f"perdure jobs run-now {job.id} runs it without waiting"
    if reason is Reason.BUDGET_EXCEEDED:
        advice = advice.format(name=quote((note or "").partition(": ")[0] or "NAME"))
    until = None if is_looked_at_again(job) else job.due_at
    if until is None and job.due_at is not None:
        facts.append(f"It is looked at again at {utc_text(job.due_at)}.")
    remedy = None if reason in _ADVICE else Remedy("run_now", job.id, "Run now")
    return Why(job=job, answer=answer, facts=tuple(facts), until=until, what_to_do=advice, remedy=remedy)


async def _breaker_open(store: Store, job: JobView) -> Why:
    note = _note(job) or ""
    named = [
        view
        for view in await store.breakers()
        if note == view.name or note.startswith((f"{view.name}:", f"{view.name},"))
    ]
    if not named:
        return _plain(job, None)
    view = max(named, key=lambda breaker: len(breaker.name))
    if view.state is BreakerState.CLOSED:
        answer = f"Circuit breaker {view.name!r} is closed again: jobs are let through slowly at first."
        return Why(job=job, answer=answer, facts=(*_about_breaker(view),), until=job.due_at, what_to_do="look again")
    return Why(
        job=job,
        answer=f"Circuit breaker {view.name!r} is {view.state}: it holds the jobs behind it.",
        facts=(f"Noted when it was held: {note}", *_about_breaker(view)),
        until=None if view.by_hand else job.due_at,  # its next look is not the end of the wait
        what_to_do=f"it goes on by itself; or perdure breakers close {quote(view.name)}"
        if not view.by_hand
        else f"perdure breakers close {quote(view.name)}",
        remedy=Remedy("close_breaker", view.name, "Close the breaker"),
    )


def _about_breaker(view: BreakerView) -> list[str]:
    facts = []
    if view.changed_at is not None:
        by_hand = f", by {view.by or 'hand'}" if view.by or view.by_hand else ""
        facts.append(
            f"It is {view.state} since {utc_text(view.changed_at)}{by_hand}{f': {view.note}' if view.note else '.'}"
        )
    if view.state is BreakerState.OPEN and view.until is not None:
        facts.append(f"Trials begin at {utc_text(view.until)}.")
    if view.state is BreakerState.HALF_OPEN:
        facts.append(f"{some(len(view.trials), 'trial')} under way.")
    return facts


async def _key_held(store: Store, job: JobView) -> Why:
    holder = None if job.unique_key is None else await store.key_holder(job.unique_key)
    facts = [f"The key is {job.unique_key}."]
    advice = "it is checked again every 30 seconds"
    if holder is not None and holder != job.id:
        view = await store.job(holder)
        answer = f"Job {holder} holds its unique key."
        facts += [f"That job is {view.state}, of kind {view.kind}."] if view is not None else []
        advice += f"; for the other one: perdure jobs why {holder}"
    else:
        answer = "Another job held its unique key when it was last checked; now the key is free."
    return Why(job=job, answer=answer, facts=tuple(facts), until=job.due_at, what_to_do=advice)


async def _unknown_kind(_: Store, job: JobView) -> Why:
    return Why(
        job=job,
        answer=f"The worker that took it has no handler for kind {job.kind!r}.",
        facts=("Retried for 24 hours, then marked dead.",),
        until=job.due_at,
        what_to_do=f"deploy a worker whose code declares {job.kind!r}, or perdure jobs cancel {job.id}",
    )


_SPECIAL: Final[dict[Reason, Callable[[Store, JobView], Awaitable[Why]]]] = {
    Reason.AWAITING_EVENT: awaits_event,
    Reason.AWAITING_CHILDREN: awaits_children,
    Reason.BREAKER_OPEN: _breaker_open,
    Reason.KEY_HELD: _key_held,
    Reason.UNKNOWN_KIND: _unknown_kind,
}


def _is_for(job: JobView, reason: Reason) -> bool:
    return job.reason == reason or job.reason.startswith(f"{reason}: ")


def _note(job: JobView) -> str | None:
    """The details of the reason."""
    _, colon, note = job.reason.partition(": ")
    return note if colon else None
