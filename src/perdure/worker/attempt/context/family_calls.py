"""The part of the context that spawns jobs and waits for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeVar, overload

from perdure.domain.duration import Duration
from perdure.domain.flows.flow import OnEnd
from perdure.enqueue.calls import Call
from perdure.errors import ArgumentError
from perdure.flows.families import children
from perdure.flows.families.children import checked_calls, order_for
from perdure.flows.families.family import ChildResult, Failures, Family
from perdure.flows.journal import Journal
from perdure.worker.attempt.context.answers import Answer
from perdure.worker.attempt.context.flow_calls import FlowCalls

R = TypeVar("R")


class FamilyCalls(FlowCalls):
    """The calls of a handler that concern children."""

    __slots__ = ()

    def spawn(
        self, calls: Iterable[Call[R]], *, name: str = "spawn", on_end: Literal["cancel", "keep"] | OnEnd = "cancel"
    ) -> Answer[Family[R]]:
        """Spawn child jobs once, no matter how often this handler runs: `await ctx.spawn(calls)`.

        They are stored when this returns, all or none. To wait for them, `await ctx.gather(family)`. When this job
        ends, those that are not final are cancelled; with on_end="keep" they continue.
        """
        journal = self._journal_for("ctx.spawn()")
        given = checked_calls(journal.claim.kind, calls)
        order = order_for(given, on_end=on_end)
        key = journal.key(name, "ctx.spawn")
        return self._answer("ctx.spawn()", children.spawn(journal, key, given, order))

    @overload
    def gather(
        self,
        calls: Iterable[Call[R]] | Family[R],
        *,
        failures: Literal["raise"] = "raise",
        quorum: int | None = None,
        within: Duration | None = None,
        name: str = "gather",
        on_end: Literal["cancel", "keep"] | OnEnd = "cancel",
    ) -> Answer[list[R]]: ...
    @overload
    def gather(
        self,
        calls: Iterable[Call[R]] | Family[R],
        *,
        failures: Literal["collect"],
        quorum: int | None = None,
        within: Duration | None = None,
        name: str = "gather",
        on_end: Literal["cancel", "keep"] | OnEnd = "cancel",
    ) -> Answer[list[ChildResult[R]]]: ...
    def gather(
        self,
        calls: Iterable[Call[R]] | Family[R],
        *,
        failures: Literal["raise", "collect"] | Failures = "raise",
        quorum: int | None = None,
        within: Duration | None = None,
        name: str = "gather",
        on_end: Literal["cancel", "keep"] | OnEnd = "cancel",
    ) -> Answer[list[Any]]:
        """Spawn child jobs, wait until they are final, and return their results in order.

        `await ctx.gather(load.call(c) for c in chunks)`. The wait occupies no worker: the handler is left, and runs
        again from its beginning when the wait is over; completed steps do not run again.

        If children died or were cancelled, ChildrenFailed is raised, and this job's retry decides; a retry does not run
        finished children again. With failures="collect" the result is a ChildResult for each child instead. `quorum`:
        this many successes are enough; the results are those of the children that have succeeded by then. `within`:
        wait no longer than this; then ChildrenTimeout is raised, or with "collect" those that are not final have the
        state None. `on_end` decides what happens to children that are not final when this job ends. It also accepts a
        family that `ctx.spawn` returned.
        """
        journal = self._journal_for("ctx.gather()")
        given, family = (calls.calls, calls.key) if isinstance(calls, Family) else (calls, None)
        if family is not None and quorum is not None:
            raise ArgumentError("quorum", f"cannot be set for {family}, which is spawned: gather its calls at once")
        wanted = checked_calls(journal.claim.kind, given)
        order = order_for(wanted, on_end=on_end, failures=failures, quorum=quorum, within=within)
        key = journal.key(name, "ctx.gather")
        return self._answer("ctx.gather()", children.gather(journal, key, order, family))


def journal_of(context: FamilyCalls, call: str) -> Journal:
    """The journal of an attempt, for perdure's own handlers."""
    return context._journal_for(call)  # noqa: SLF001 - what every call of the context does
