"""Consequences of a job's end or requeue: cancels children, counts in families, wakes parents.

Each transaction that ends or requeues a job runs this. Rows are locked in one order everywhere, so that there is no
deadlock: events (see `events`), then families by their keys, then leases by job id. So the families are locked before
anything is written: a child that ends and a parent that goes to sleep then see each other, in either order. Only a job
that is to be called off in just that moment, or a family that is made in it, can be met out of order; if that ever ends
in a deadlock, the transaction is retried.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from perdure.clock import Clock
from perdure.domain.flows.flow import Awaits
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import JobState, Reason
from perdure.engines.postgres.database.arrays import text_array
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.wire import Asks, Params
from perdure.engines.postgres.flows.linking import Linking
from perdure.engines.shared.batch_sizes import ENDS_AT_ONCE
from perdure.policy.consequences import JOB_DELETED, PARENT_DELETED, PARENT_ENDED


class Settling:
    """Applies, in an open transaction, the consequences of the end of jobs."""

    def __init__(self, naming: Naming, clock: Clock | None, linking: Linking) -> None:
        self._statements = naming.statements("flows/settling.sql")
        self._linking = linking
        self._channel = naming.channel
        self._clock = clock

    async def lock(
        self, wire: Asks, ending: Iterable[tuple[JobId, bool]], awaited: Collection[tuple[JobId, str]] = ()
    ) -> set[tuple[JobId, str]]:
        """Lock all families that may be touched; returns those `awaited` that are settled.

        `ending` are jobs, and whether they are sure to end. A family that does not exist is not waited for.
        """
        jobs = list(ending)
        params: Params = {
            "ids": text_array([job_id for job_id, _ in jobs]),
            "finals": text_array(["t" if is_final else "f" for _, is_final in jobs]),
            "parents": text_array([parent for parent, _ in awaited]),
            "keys": text_array([key for _, key in awaited]),
        }
        rows = await wire.fetch(self._statements["lock_families"], params)
        return set(awaited).difference((parent, key) for parent, key, is_settled in rows if not is_settled)

    async def settle(self, wire: Asks, job_ids: Sequence[JobId], *, audits: bool = True) -> tuple[tuple[str, str], ...]:
        """Apply the consequences for those of these jobs that have ended and have a family; `audits` cancels.

        Returns the links of chains that it made, each by its queue and kind.
        """
        if not job_ids:
            return ()
        cancelled: list[JobId] = []
        parents: dict[str, list[JobId]] = {}
        for parent, state in await wire.fetch(self._statements["ended_parents"], {"ids": text_array(job_ids)}):
            parents.setdefault(PARENT_ENDED[JobState(state)], []).append(parent)
        for why, ended in parents.items():
            cancelled += await self._call_off(wire, ended, why, audits=audits)
        return tuple(await self._count(wire, [*job_ids, *cancelled]))

    async def ended_joined(self, job_ids: Collection[JobId] | None, wire: Asks) -> list[tuple[JobId, JobId]]:
        """Children that were joined to jobs which have ended, of these or of all, each with its job."""
        ids = None if job_ids is None else text_array(sorted(job_ids))
        rows = await wire.fetch(self._statements["ended_joined"], {"ids": ids, "limit": ENDS_AT_ONCE})
        return [(JobId(child), JobId(job)) for child, job in rows]

    async def settle_joined(self, job_ids: Collection[JobId] | None, wire: Asks) -> int:
        """Count the ends of jobs to which children were joined; how many children."""
        ended = await self.ended_joined(job_ids, wire)
        if ended:
            children, jobs = [child for child, _ in ended], [job for _, job in ended]
            await self.lock(wire, [(child, True) for child in children])
            await self._count(wire, children, jobs, gone=JOB_DELETED)
            await wire.fetch(self._statements["close_joined"], {"ids": text_array(children)})
        return len(ended)

    async def lock_revived(self, wire: Asks, job_ids: Sequence[JobId]) -> list[JobId]:
        """Lock the families that wait again if these finished jobs get a new life; their members among the children."""
        joined = await wire.fetch(self._statements["reopen_joined"], {"ids": text_array(job_ids)})
        members = [*job_ids, *(JobId(child_id) for (child_id,) in joined)]
        locked = await wire.fetch(self._statements["lock_revived"], {"ids": text_array(members)})
        return members if locked else []

    async def revive(self, wire: Asks, job_ids: Sequence[JobId]) -> None:
        """Let families wait again for children that had failed, and get a new life; they must be locked."""
        await wire.fetch(self._statements["revive"], {"ids": text_array(job_ids)})

    async def settle_deleted(self, wire: Asks, job_ids: Sequence[JobId]) -> None:
        """Update the families of deleted jobs."""
        cancelled = await self._call_off(wire, job_ids, PARENT_DELETED, regardless=True)
        await self._count(wire, job_ids, gone=JOB_DELETED)
        await self._count(wire, cancelled)

    async def set_aside(self, wire: Asks, job_ids: Sequence[JobId]) -> None:
        """Cancel jobs that are to be forgotten once their children are cancelled: only their own parents count it."""
        await self.lock(wire, [(job_id, True) for job_id in job_ids])
        await self._call_off(wire, (), JOB_DELETED, own=job_ids)
        await self._count(wire, job_ids)

    async def cancel_some(self, job_ids: Sequence[JobId], limit: int, wire: Asks) -> int:
        """Cancel this many active children of jobs to be deleted, with all below them; returns how many."""
        await self.lock(wire, [(job_id, True) for job_id in job_ids])
        cancelled = await self._call_off(wire, job_ids, PARENT_DELETED, regardless=True, limit=limit)
        await self._count(wire, cancelled)
        return len(cancelled)

    async def wake(self, wire: Asks, sleepers: Iterable[tuple[JobId, str]], reason: Reason) -> int:
        """Make jobs ready that still wait for this, or for this among others; how many are."""
        pairs = sorted(sleepers)
        params: Params = {
            "ids": text_array([job_id for job_id, _ in pairs]),
            "awaits": text_array([awaits for _, awaits in pairs]),
            "reason": reason.value,
            "key_held": Reason.KEY_HELD.value,
            "channel": self._channel,
            "now": self._clock.now() if self._clock else None,
        }
        [[woken]] = await wire.fetch(self._statements["wake"], params)
        return int(woken)

    async def _call_off(
        self,
        wire: Asks,
        parents: Sequence[JobId],
        why: str,
        *,
        regardless: bool = False,
        own: Sequence[JobId] = (),
        limit: int | None = None,
        audits: bool = True,
    ) -> list[JobId]:
        """Cancel the children of these that are not final, with all descendants; returns the cancelled jobs.

        `own` are jobs that are cancelled as if they were such children. Of the first generation at most `limit`.
        """
        cancelled: list[JobId] = []
        while parents or own:
            below: list[JobId] = []
            seen, met = 1, 0
            while met < seen:
                params: Params = {
                    "parents": text_array(parents),
                    "own": text_array(own),
                    "limit": limit,
                    "why": why,
                    "regardless": regardless,
                    "audits": audits,
                    "now": self._clock.now() if self._clock else None,
                }
                [[seen, stopped, with_children]] = await wire.fetch(self._statements["cancel_children"], params)
                met = len(stopped or ())
                cancelled += stopped or ()
                below += with_children or ()
            if own:
                break
            parents, why, regardless, limit = below, PARENT_ENDED[JobState.CANCELLED], False, None
        return cancelled

    async def _count(
        self, wire: Asks, children: Sequence[JobId], jobs: Sequence[JobId] | None = None, gone: str | None = None
    ) -> list[tuple[str, str]]:
        """Count the ends of children; `jobs` are those that stand for them, if they were joined to others.

        Returns the links of chains that it made.
        """
        links: list[tuple[str, str]] = []
        if not children:
            return links
        ids = text_array(sorted(children) if jobs is None else children)
        params: Params = {"ids": ids, "jobs": ids if jobs is None else text_array(jobs), "gone": gone}
        settled = await wire.fetch(self._statements["settle"], params)
        sleepers: list[tuple[JobId, str]] = []
        for parent, key, next_link in settled:
            link = None if next_link is None else await self._linking.go_on(wire, parent, key, next_link)
            if link is None:
                sleepers.append((parent, str(Awaits(family=key))))
            else:
                links.append((link.queue, link.kind))
        if sleepers:
            await self.wake(wire, sleepers, Reason.CHILDREN_SETTLED)
        return links
