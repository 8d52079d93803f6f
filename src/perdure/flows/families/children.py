"""`ctx.spawn` and `ctx.gather`: jobs that a job spawns, and waits for without occupying a worker.

A parent that gathers is parked until its children are *settled*: all of them final, or the quorum reached or out of
reach, or its time up. Then it runs again from its beginning; completed steps do not run again, and the gather returns
the results. The seen outcomes are stored, so that a later attempt sees the same ones.

Failed children make the gather raise ChildrenFailed, which is a failure of the parent like any other. When the parent
is retried, finished children do not run again: the gather looks at their current state. To get another outcome, requeue
the dead children, and then the parent if it is dead too. The parent waits for a requeued child like for any other, and
the new outcome counts; a success is never revoked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar, cast

import msgspec
from msgspec.structs import replace

from perdure.domain.duration import Duration, parse_duration
from perdure.domain.flows.child_ids import CHILDREN_LIMIT, child_ids
from perdure.domain.flows.flow import Child, FamilyView, OnEnd, StepState
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import NewJob
from perdure.domain.jobs.states import JobState
from perdure.enqueue.calls import Call, check_child
from perdure.errors import ArgumentError, ChildrenFailed, ChildrenTimeout, FailedChild, PayloadError
from perdure.events import FamilySettled
from perdure.flows.families.family import ChildResult, Failures, Family, Order
from perdure.flows.families.spawning import FamilyStep
from perdure.flows.journal import Journal
from perdure.kinds.encoding import encode

R = TypeVar("R")

_LETTERS: Final = {JobState.SUCCEEDED: "s", JobState.DEAD: "d", JobState.CANCELLED: "c", None: "-"}
_FATES: Final = {letter: fate for fate, letter in _LETTERS.items()}


async def spawn(journal: Journal, key: str, calls: Sequence[Call[R]], order: Order) -> Family[R]:
    """Spawn children once, without waiting for them."""
    async with journal.busy():
        step = FamilyStep(journal, key, order)
        if await step.is_empty():
            return Family(key, (), ())
        await step.begin()
        if step.record.state is not StepState.DONE:
            await step.finish(None)
        return Family(step.family, await _ids(step), tuple(calls))


async def _ids(step: FamilyStep) -> tuple[JobId, ...]:
    """The jobs of the children; only children with a unique key may be jobs that existed before."""
    children = step.order.children
    if any(child.unique is not None for child in children):
        return tuple(child.job_id for child in await step.children(len(children)) or ())
    return tuple(child_ids(step.journal.claim.job_id, step.family, len(children)))


async def gather(journal: Journal, key: str, order: Order, given: str | None = None) -> list[Any]:
    """Wait for children, spawned here unless the family is `given`; values, or ChildResults, in call order."""
    async with journal.busy():
        children = await settled(FamilyStep(journal, key, order, given))
        if order.failures is Failures.COLLECT:
            return [_collected(child, order) for child in children]
        return [order.read(child) for child in children if child.fate is JobState.SUCCEEDED]


async def settled(step: FamilyStep) -> list[Child]:
    """The children of a family once they are settled; raises as the order says."""
    if await step.is_empty():
        return []
    view = await step.begin()
    if view is None:
        await step.wait()
    done = step.record.state is StepState.DONE
    is_waiting = not (done or view.is_settled or step.is_late)
    if is_waiting and not step.is_back:
        await step.wait()
    children = await step.children(view.total)
    if children is None:
        await step.begin_again("its children cannot be read")
        await step.wait()
    if is_waiting:
        await step.stay(len(children))
    if done:
        return _as_kept(step, children)
    view = _counted(view, children)
    if not (view.is_settled or step.is_late):  # one of them was requeued just now
        await step.stay(len(children))
    await step.journal.emit(_settlement(step, view, children))
    if _is_short(step.order, children):
        raise _failure(step, view, children)
    await step.finish(_kept(children))
    return children


def _is_short(order: Order, children: list[Child]) -> bool:
    """Whether fewer children have succeeded than required."""
    if order.failures is Failures.COLLECT:
        return False
    return sum(child.fate is JobState.SUCCEEDED for child in children) < (order.quorum or len(children))


def _counted(view: FamilyView, children: list[Child]) -> FamilyView:
    """The family with these children."""
    fates = [child.fate for child in children]
    succeeded, unfinished = fates.count(JobState.SUCCEEDED), fates.count(None)
    return replace(view, succeeded=succeeded, failed=len(fates) - succeeded - unfinished)


def _failure(step: FamilyStep, view: FamilyView, children: list[Child]) -> ChildrenFailed:
    order = step.order
    failed = tuple(
        FailedChild(child.number, child.job_id, child.fate.value, child.error)
        for child in children
        if child.fate is not None and child.fate is not JobState.SUCCEEDED
    )
    results = tuple(order.read(child) if child.fate is JobState.SUCCEEDED else None for child in children)
    unfinished = tuple(child.number for child in children if child.fate is None)
    if view.is_settled:
        return ChildrenFailed(step.family, failed, results)
    within = 0.0 if order.within is None else order.within.total_seconds()
    return ChildrenTimeout(step.family, failed, results, unfinished, within)


def _settlement(step: FamilyStep, view: FamilyView, children: list[Child]) -> FamilySettled:
    claim, fates = step.journal.claim, [child.fate for child in children]
    succeeded, unfinished = fates.count(JobState.SUCCEEDED), fates.count(None)
    if not unfinished:
        because = "all are final"
    elif not view.is_settled:
        because = "the time is up"
    else:
        because = "quorum reached" if succeeded >= (view.quorum or 0) else "quorum out of reach"
    failed = len(fates) - succeeded - unfinished
    return FamilySettled(claim.job_id, claim.kind, step.family, len(fates), succeeded, failed, because)


def _kept(children: list[Child]) -> str | None:
    """The seen outcomes of the children, one letter each; None: all have succeeded."""
    letters = "".join(_LETTERS[child.fate] for child in children)
    return None if letters == "s" * len(children) else encode(letters)


def _as_kept(step: FamilyStep, children: list[Child]) -> list[Child]:
    """The children as first seen, regardless of later changes."""
    if step.record.result is None:
        fates: list[JobState | None] = [JobState.SUCCEEDED] * len(children)
    else:
        fates = [_FATES[letter] for letter in msgspec.json.decode(step.record.result, type=str)]
    return [replace(child, fate=fate) for child, fate in zip(children, fates, strict=True)]


def _collected(child: Child, order: Order) -> ChildResult[Any]:
    if child.fate is JobState.SUCCEEDED:
        value = order.read(child)
        return ChildResult(ok=True, job_id=child.job_id, state=child.fate, value=value, warnings=child.warnings)
    return ChildResult(ok=False, job_id=child.job_id, state=child.fate, error=child.error)


def checked_calls(parent: str, calls: object) -> tuple[Call[Any], ...]:
    """The calls that a handler of the kind `parent` asks for; invalid children are refused by name."""
    if isinstance(calls, Call) or not isinstance(calls, Iterable):
        raise ArgumentError("calls", f"must be a list of calls such as [job.call(1), job.call(2)], got {calls!r}")
    given = tuple(calls)
    if len(given) > CHILDREN_LIMIT:
        raise ArgumentError(
            "calls", f"are {len(given):,}, {CHILDREN_LIMIT:,} are allowed: let children spawn children of their own"
        )
    for call in given:
        if not isinstance(call, Call):
            raise ArgumentError("calls", f"must be calls such as job.call(1), got {call!r}")
        check_child(call)
        if parent not in call.gateway.kinds:
            raise ArgumentError(
                "calls",
                f"hold {call.kind.name}, which another app than that of {parent} declares: no worker would run it",
            )
    return given


def order_for(
    calls: Sequence[Call[Any]],
    *,
    on_end: OnEnd | str,
    failures: Failures | str = Failures.RAISE,
    quorum: int | None = None,
    within: Duration | None = None,
) -> Order:
    """The order of a handler; invalid options are refused by name."""
    if quorum is not None and (isinstance(quorum, bool) or not 1 <= quorum <= len(calls)):
        raise ArgumentError("quorum", f"must be from 1 to the number of children ({len(calls)}), got {quorum!r}")
    return Order(
        children=tuple(call.job for call in calls),
        read=_reader(calls),
        quorum=quorum,
        on_end=_word("on_end", OnEnd, on_end),
        within=None if within is None else parse_duration("within", within),
        failures=_word("failures", Failures, failures),
    )


def plain_order(jobs: Sequence[NewJob], failures: Failures, on_end: OnEnd = OnEnd.CANCEL) -> Order:
    """Children of unknown kinds: their results stay JSON."""
    return Order(
        children=tuple(jobs),
        read=lambda child: msgspec.Raw((child.result or "null").encode()),
        failures=failures,
        on_end=on_end,
    )


def _reader(calls: Sequence[Call[Any]]) -> Callable[[Child], Any]:
    def read(child: Child) -> Any:
        if child.result is None:
            return None
        kind = calls[child.number].kind
        try:
            return kind.signature.decode_result(child.result)
        except (msgspec.MsgspecError, ValueError, TypeError, NotImplementedError) as error:
            raise PayloadError(
                f"result of child {child.number}", f"(job {child.job_id}) is not what {kind.name} declares: {error}"
            ) from error

    return read


Word = TypeVar("Word", OnEnd, Failures)


def _word(field: str, words: type[Word], given: object) -> Word:
    try:
        return words(cast("str", given))
    except ValueError:
        raise ArgumentError(
            field, f"must be {' or '.join(repr(word.value) for word in words)}, got {given!r}"
        ) from None
