"""The commands of the screen: each asks first, and reports what it did.

Each is a command of the desk, with its audit entry. The screen adds the question and the sentence.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct

from perdure.domain.worker import WorkerView
from perdure.errors import ConflictError
from perdure.operate.desk import Desk
from perdure.operate.views.failure_groups import FailureGroup
from perdure.operate.views.kind_views import KindView
from perdure.operate.views.queue_views import QueueView
from perdure.operate.wording import some
from perdure.storage.records import JobFilter
from perdure.surfaces.cli.terminal.hostile import one_line

_PROBE: Final = "a probe of its group"


class Offer(Struct, frozen=True):
    """A command that is ready to run: the question, the facts shown with it, and what runs after a yes."""

    question: str
    run: Callable[[], Awaitable[str]]
    facts: tuple[str, ...] = ()


async def pause_or_resume(desk: Desk, target: QueueView | KindView) -> Offer:
    """Pause a queue or kind, or resume it."""
    word = "queue" if isinstance(target, QueueView) else "kind"
    name, shown = target.name, f"{word} {one_line(target.name)}"
    queue, kind = (name, None) if word == "queue" else (None, name)
    if target.paused:

        async def resume() -> str:
            resumed = await desk.holds.resume(queue=queue, kind=kind)
            return f"Resumed {shown}: {some(resumed.jobs, 'job')} became ready."

        return Offer(f"Resume {shown}?", resume)

    async def pause() -> str:
        await desk.holds.pause(queue=queue, kind=kind)
        return f"Paused {shown}. Running jobs continue."

    return Offer(f"Pause {shown}?", pause, ("Running jobs continue. No further job starts until it is resumed.",))


async def quiet_or_loud(desk: Desk, worker: WorkerView) -> Offer:
    """Tell a worker to stop claiming, or to claim again."""
    name = one_line(worker.name)
    quiet = worker.quiet_at is None

    async def run() -> str:
        await desk.quiet([str(worker.id)], quiet=quiet)
        return f"Worker {name} stops claiming." if quiet else f"Worker {name} claims again."

    return Offer(f"Tell worker {name} to {'stop claiming' if quiet else 'claim again'}?", run)


async def probe(desk: Desk, group: FailureGroup) -> Offer:
    """Requeue the newest dead letter of a group, to see whether it succeeds now."""
    newest = group.newest
    if newest is None:
        raise ConflictError(f"group {group.fingerprint} has no more dead letters")

    async def run() -> str:
        await desk.requeue(newest, why=_PROBE)
        return f"Requeued {newest} as a probe."

    return Offer(
        f"Requeue one {one_line(group.kind)} job as a probe?", run, (f"It is the newest of the group: {newest}.",)
    )


async def requeue_group(desk: Desk, group: FailureGroup) -> Offer:
    """Requeue all dead letters of a group, after a counted dry run."""
    plan = await desk.plan("requeue", JobFilter(fingerprint=group.fingerprint, states="dead"))
    least = "at least " if plan.capped else ""

    async def run() -> str:
        bulk = await desk.start_bulk(plan)
        return f"Bulk command {bulk.id} requeues {some(plan.able, 'job')}: perdure bulk show {bulk.id}"

    return Offer(f"Requeue {least}{some(plan.able, one_line(group.kind) + ' job')}?", run, plan.notes)
