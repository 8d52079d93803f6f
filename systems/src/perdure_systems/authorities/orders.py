"""Orders as people see them: the job, how far its polling is, and its certificate."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from perdure import ArgumentError, JobFilter, JobState, JobView, NotFoundError, Page, SettingsError
from perdure_systems.authorities import failures, records
from perdure_systems.authorities.jobs import ORDER_KIND, REVOKE_KIND, app, database
from perdure_systems.authorities.records import Certificate
from perdure_systems.authorities.settings import DEFAULT_MAX_WAIT, Authority, max_wait_of

OPEN: Final = frozenset({JobState.SCHEDULED, JobState.READY, JobState.RUNNING, JobState.RETRYING, JobState.WAITING,
                         JobState.PAUSED})  # fmt: skip
STATUSES: Final = {
    "open": OPEN,
    "queued": frozenset({JobState.SCHEDULED, JobState.READY}),
    "asking": frozenset({JobState.RUNNING}),
    "parked": frozenset({JobState.WAITING, JobState.RETRYING, JobState.PAUSED}),
    "issued": frozenset({JobState.SUCCEEDED}),
    "failed": frozenset({JobState.DEAD}),
    "cancelled": frozenset({JobState.CANCELLED}),
}
_TONES: Final = {
    "queued": "ready", "asking": "running", "parked": "waiting", "issued": "done", "failed": "dead",
    "cancelled": "cancelled", "revoking": "retrying", "revoked": "cancelled",
}  # fmt: skip


class Round(msgspec.Struct, frozen=True):
    """Where the polling stands, as perdure keeps it in the step: the round, when it began, and its polls so far."""

    number: int = 1
    began: datetime | None = None
    polls: int = 0


class OrderView(msgspec.Struct, frozen=True, kw_only=True):
    """An order. `status` is queued, asking, parked, issued, failed, cancelled, revoking or revoked."""

    id: str
    authority: Authority
    names: tuple[str, ...]
    status: str
    tone: str
    created_at: datetime
    finished_at: datetime | None = None
    authority_order: str | None = None  # the authority's own id
    polls: int = 0
    polls_in_round: int = 0
    round: int = 0
    next_poll: datetime | None = None
    deadline: datetime | None = None  # the end of this round; then the job rests, and a new round begins
    max_wait_seconds: int = 600
    last_answer: str | None = None  # what the last poll brought, an error or a status
    error: str | None = None  # why the order has failed
    certificate: Certificate | None = None
    revocation_error: str | None = None  # why the last revocation has failed; of a single order only

    @property
    def is_open(self) -> bool:
        """Whether it is still under way."""
        return self.status in {"queued", "asking", "parked"}


async def find_order(order_id: str) -> OrderView:
    """An order; raises NotFoundError."""
    try:
        job = await (await app.desk("api")).job_by_ref(order_id)
    except (NotFoundError, ArgumentError):  # what cannot be an id is the id of nothing
        raise NotFoundError(f"there is no order {order_id[:100]!r}") from None
    if job.kind != ORDER_KIND:
        raise NotFoundError(f"there is no order {order_id[:100]!r}")
    [order] = await _viewed([job])
    if order.status != "issued":
        return order
    which = JobFilter(kind=REVOKE_KIND, states="dead", tag=f"order:{order_id}")
    failed = (await (await app.desk("api")).jobs(which, Page(limit=1))).jobs
    return msgspec.structs.replace(order, revocation_error=_plain(failed[0].last_error)) if failed else order


async def list_orders(
    page: Page, *, authority: Authority | None = None, states: Collection[JobState] = ()
) -> tuple[list[OrderView], str | None]:
    """Orders, newest first, and where the next page begins."""
    found = await (await app.desk("api")).jobs(_filter(authority, states), page)
    return await _viewed(found.jobs), None if found.next is None else str(found.next)


async def count_orders(authority: Authority | None = None, states: Collection[JobState] = ()) -> int:
    """How many orders there are, up to 10,000."""
    return (await (await app.desk("api")).count(_filter(authority, states))).jobs


def _filter(authority: Authority | None, states: Collection[JobState]) -> JobFilter:
    tag = None if authority is None else f"authority:{authority}"
    return JobFilter(kind=ORDER_KIND, tag=tag, states=tuple(states) or None)


async def _viewed(jobs: Sequence[JobView]) -> list[OrderView]:
    steps = await (await app.desk("api")).steps(job.id for job in jobs)
    refs = [job.ref for job in jobs if job.ref is not None]
    certificates = await records.find_all(database, refs)
    revoking = await _under_revocation([ref for ref in certificates if certificates[ref].revoked_at is None])
    orders: list[OrderView] = []
    for job in jobs:
        order_id, by_key = job.ref or str(job.id), {step.key: step for step in steps.get(job.id, ())}
        authority, certificate = Authority((job.arguments or {})["authority"]), certificates.get(order_id)
        placed, poll = by_key.get("place"), by_key.get("collect")
        at = Round() if poll is None or poll.state != "begun" or not poll.result else _round(poll.result)
        status = _status(job, certificate, is_revoking=order_id in revoking)
        last = poll or placed
        limit = _max_wait(authority)
        orders.append(
            OrderView(
                id=order_id,
                authority=authority,
                names=tuple((job.arguments or {})["names"]),
                status=status,
                tone=_TONES.get(status, "paused"),
                created_at=job.created_at,
                finished_at=job.finished_at,
                authority_order=_id_of(placed.result) if placed and placed.result and placed.state == "done" else None,
                polls=0 if poll is None else poll.tries,
                polls_in_round=at.polls,
                round=0 if poll is None else at.number,
                next_poll=job.due_at if job.state in {JobState.WAITING, JobState.RETRYING} else None,
                deadline=at.began + limit if at.began is not None and job.state in OPEN else None,
                max_wait_seconds=int(limit.total_seconds()),
                last_answer=None if last is None else _plain(last.note),
                error=_plain(job.last_error) if job.state is JobState.DEAD else None,
                certificate=certificate,
            )
        )
    return orders


async def _under_revocation(order_ids: Sequence[str]) -> set[str]:
    """Those of these orders for which a revocation is under way."""
    if not order_ids:
        return set()
    which = JobFilter(kind=REVOKE_KIND, states=tuple(OPEN))
    jobs = (await (await app.desk("api")).jobs(which, Page(limit=500))).jobs
    return {(job.arguments or {})["order_id"] for job in jobs} & set(order_ids)


def _status(job: JobView, certificate: Certificate | None, *, is_revoking: bool) -> str:
    if certificate is not None and certificate.revoked_at is not None:
        return "revoked"
    return "revoking" if is_revoking else job.word or job.state.value


def _plain(text: str | None) -> str | None:
    """An error without the module that its type comes from."""
    return None if text is None else text.replace(f"{failures.__name__}.", "")


def _max_wait(authority: Authority) -> timedelta:
    """The setting, or its default if it cannot be read: a list must be shown all the same."""
    try:
        return max_wait_of(authority)
    except SettingsError:
        return DEFAULT_MAX_WAIT


def _round(text: str) -> Round:
    return msgspec.json.decode(text, type=Round)


def _id_of(text: str) -> str | None:
    found = msgspec.json.decode(text)
    return found.get("id") if isinstance(found, dict) else None
