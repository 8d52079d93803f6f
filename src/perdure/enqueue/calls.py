"""Calls that are enqueued later: one by one, many at once, or one after the other."""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar

from msgspec import Struct, json

from perdure.domain.flows.plan import CHAIN, Planned, planned
from perdure.domain.jobs.ids import new_job_id
from perdure.domain.jobs.job import DEFAULT_QUEUE, NewJob
from perdure.enqueue.gateway import Gateway
from perdure.enqueue.handle import Handle
from perdure.errors import ArgumentError
from perdure.kinds.encoding import encode
from perdure.kinds.kind import Kind
from perdure.kinds.options import checked_name

R_co = TypeVar("R_co", covariant=True)
N = TypeVar("N")

PLAN_LIMIT_BYTES: Final = 16 * 1024 * 1024
LINKS_SHOWN: Final = 20  # links of a chain that its arguments show; all links are stored beside it
RESULT: Final = "result"
RESULTS: Final = "results"


class Call(Struct, Generic[R_co], frozen=True, gc=False):
    """A job with its arguments, checked and ready to be enqueued with others.

    `a.call(1) | b.after()` is a chain: `b` runs when `a` has succeeded. `lacks` is the parameter that the previous
    job's result fills; a call with `lacks` can only be made after another call.
    """

    job: NewJob
    kind: Kind
    gateway: Gateway
    lacks: str | None = None

    def __or__(self, then: Call[N] | Chain[N]) -> Chain[N]:
        return Chain((self,)) | then


class Chain(Struct, Generic[R_co], frozen=True):
    """Calls that run one after the other: each starts when the previous one has succeeded."""

    calls: tuple[Call[Any], ...]

    def __or__(self, then: Call[N] | Chain[N]) -> Chain[N]:
        if isinstance(then, Chain):
            return Chain((*self.calls, *then.calls))
        if not isinstance(then, Call):
            raise ArgumentError("chain", f"must continue with a call such as job.call(1) or job.after(), got {then!r}")
        return Chain((*self.calls, then))

    async def enqueue(self, *, queue: str = DEFAULT_QUEUE, connection: Any = None) -> Handle[R_co]:
        """Store the chain; the handle gives the result of its last job.

        The chain is a job of its own in `queue`; it occupies no worker while it waits. If one of its jobs dies or is
        cancelled, the chain is dead (ChildrenFailed) and the remaining jobs are never made. A handler with a free
        parameter `result` receives the previous job's result. `connection` works as in `Job.using`.
        """
        receipt = await self._gateway.put(self._job(queue), connection)
        return Handle(self._gateway, self.calls[-1].kind, receipt)

    def enqueue_sync(self, *, queue: str = DEFAULT_QUEUE, connection: Any = None) -> Handle[R_co]:
        """Blocking version of `enqueue`."""
        receipt = self._gateway.put_sync(self._job(queue), connection)
        return Handle(self._gateway, self.calls[-1].kind, receipt)

    @property
    def _gateway(self) -> Gateway:
        return self.calls[0].gateway

    def _job(self, queue: str) -> NewJob:
        for call in self.calls:
            check_own("chain", call, self._gateway)
        check_child(self.calls[0])
        stages = [planned(self.calls[0].job), *(planned_after(call, RESULT) for call in self.calls[1:])]
        plan = tuple(encode(stage) for stage in stages)
        return plan_job(self._gateway, CHAIN, queue, plan, links=len(stages), first=stages[:LINKS_SHOWN])


def check_own(field: str, call: object, gateway: Gateway) -> None:
    """Refuse values that are not calls, and calls to jobs of another app."""
    if not isinstance(call, Call):
        raise ArgumentError(field, f"must be calls such as job.call(1), got {call!r}")
    if call.kind.name not in gateway.kinds:
        raise ArgumentError(
            field, f"must not contain {call.kind.name}, which another app declares: no worker of this app would run it"
        )


def check_child(call: Call[Any]) -> None:
    """Refuse, by name, a call that a parent cannot make."""
    if call.lacks is not None:
        raise ArgumentError(
            f"argument {call.lacks}", f"of {call.kind.name} is missing: use .after() only after another call"
        )
    refuse_own_id(call)


def refuse_own_id(call: Call[Any]) -> None:
    """Refuse options that a child cannot have: its id follows from its family and number."""
    if call.job.has_own_id:
        raise ArgumentError(
            "id", f"of {call.kind.name} cannot be set for a child, a batch or a chain: it is derived from the parent's"
        )
    if call.job.ref is not None:
        raise ArgumentError(
            "ref", f"of {call.kind.name} cannot be set for a child, a batch or a chain: enqueue it by itself"
        )


def planned_after(call: Call[Any], name: str) -> Planned:
    """A call after another one, whose outcome fills the parameter of this name if it is free."""
    refuse_own_id(call)
    if call.lacks not in {None, name}:
        raise ArgumentError(f"argument {call.lacks}", f"of {call.kind.name} is missing: here only {name!r} is given")
    is_free = name in call.kind.signature.names and name not in json.decode(call.job.args)
    return planned(call.job, name if is_free else None)


def plan_job(gateway: Gateway, kind: str, queue: str, plan: tuple[str, ...] = (), **arguments: Any) -> NewJob:
    """The built-in job that executes a plan; `plan` is stored beside its arguments."""
    gateway.check_queue(checked_name("queue", queue))
    document = encode(arguments)
    size = len(document) + sum(map(len, plan))
    if size > PLAN_LIMIT_BYTES:
        raise ArgumentError(
            "calls", f"take {size} bytes together, {PLAN_LIMIT_BYTES} are allowed: spawn them from a job of yours"
        )
    return NewJob(id=new_job_id(), kind=kind, args=document, queue=queue, plan=plan)
