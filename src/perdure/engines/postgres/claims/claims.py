"""How a worker claims jobs.

One statement serves all wanted queues: it locks rows of `ready` in order, passing over those that others have locked,
deletes them, writes the leases and reads the records. `Cursors` says where it begins.

When the connection breaks during a claim, it is unknown whether it was committed; if it was, a live worker holds jobs
that it does not know of, and no rescuer would take them back. So the next claim of that worker first raises the
worker's epoch, which waits for the lost statement or shuts it out, and then hands over what that one had taken. So does
the first claim over a new connection: it may lead to a copy that lacks the last epoch. Behind a
pooler a connection outlives the server that it leads to, so the epoch is compared now and then as well.

Such a copy lacks the newest tokens too. So before the first claim over a connection the sequence of
tokens is brought up to the clock; and a part of each token is drawn at random, so that no two claims share one even
where the sequence repeats itself.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from perdure.clock import Clock
from perdure.domain.jobs.ids import JobId, WorkerId
from perdure.domain.jobs.job import PRIORITIES, Claim
from perdure.domain.jobs.states import JobState
from perdure.engines.postgres.claims.acknowledgements import AcknowledgementPart
from perdure.engines.postgres.claims.cursors import Cursors, Place
from perdure.engines.postgres.claims.returned_jobs import ReturnedJobs
from perdure.engines.postgres.database.arrays import number_array, text_array
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.rows import Row, claims_of
from perdure.engines.postgres.database.wire import Params, Wire
from perdure.policy.decide import wait_for_key
from perdure.storage.records import Front, Wanted

_FAIR: Final = 1  # what the last column of a claimed row may hold
_CAME_BACK: Final = 2
_HAS_RETURNS: Final = 4
_FROM_THE_BEGINNING: Final = [0] * len(PRIORITIES)
_BEYOND_ALL: Final = 2**63 - 1

_Look = Callable[[WorkerId, int, Wire], Awaitable[list[Row]]]


class _WorkerClaims(Struct):
    """The state that this store keeps for a worker it claims for."""

    epoch: int
    wire: Wire  # over which it was learnt
    newest_token: int = 0
    in_doubt: bool = False


class ClaimPart:
    """Takes jobs for workers, a batch at a time."""

    def __init__(
        self,
        naming: Naming,
        pool: Pool,
        clock: Clock | None,
        acknowledgements: AcknowledgementPart,
        returns: ReturnedJobs,
    ) -> None:
        self._statements = naming.statements("claims/claims.sql")
        self._pool = pool
        self._clock = clock
        self._acknowledgements = acknowledgements
        self._returns = returns
        self._cursors = Cursors()
        self._known: dict[WorkerId, _WorkerClaims] = {}

    async def claim(self, worker_id: WorkerId, wanted: Sequence[Wanted]) -> list[Claim]:
        """Take ready jobs for this worker, queue by queue as wanted: by priority, then by their place in line."""
        limits: dict[str, int] = {}
        levels: list[Wanted] = []
        for want in wanted:
            if want.limit > 0 and want.level is not None:
                levels.append(want)
            elif want.limit > 0:
                limits[want.queue] = limits.get(want.queue, 0) + want.limit
        looks: list[_Look] = []
        if levels:
            looks.append(partial(self._look_at_levels, levels))
        if limits:
            looks.append(partial(self._look, limits))
        return await self._pool.run(partial(self._claim, worker_id, looks)) if looks else []

    async def fronts(self, queues: Sequence[str], depth: int) -> list[Front]:
        """What comes next in each priority of these queues, from where claims begin to look, or from the beginning."""
        is_full = self._cursors.wants_full_fronts(queues)
        starts = [_FROM_THE_BEGINNING if is_full else self._cursors.starts(queue) for queue in queues]
        params: Params = {
            "queues": text_array(list(queues)),
            "starts": text_array([number_array(lanes) for lanes in starts]),
            "depth": depth,
        }
        began = time.monotonic()
        rows = await self._pool.rows(self._statements["fronts"], params)
        if is_full:
            places = [(queue, priority, number) for queue, priority, _, number in rows if number is not None]
            self._cursors.saw_fronts(queues, places, time.monotonic() - began)
        return [Front(*row[:3]) for row in rows]

    async def leases(self, worker_id: WorkerId) -> list[tuple[JobId, int]]:
        """Job and token of all leases under this worker's id."""
        rows = await self._pool.rows(self._statements["leases"], {"worker": worker_id})
        return [(JobId(job_id), token) for job_id, token in rows]

    async def claims_held(self, worker_id: WorkerId, job_ids: Sequence[JobId]) -> list[Claim]:
        """The claims of this worker on these jobs, if any."""
        params: Params = {"worker": worker_id, "ids": text_array(job_ids)}
        return claims_of(await self._pool.rows(self._statements["claims_held"], params))

    async def _claim(self, worker_id: WorkerId, looks: Sequence[_Look], wire: Wire) -> list[Claim]:
        """Scan, each time in a transaction of its own; the claims of the first are in doubt until the last is over."""
        known = self._known.get(worker_id)
        if known is None:
            rows = await wire.fetch(self._statements["epoch"], {"worker": worker_id})
            if not rows:
                return []
            await wire.fetch(self._statements["keep_up"])
            known = self._known[worker_id] = _WorkerClaims(rows[0][0], wire)
        is_in_doubt = known.in_doubt or known.wire is not wire
        if is_in_doubt and (found := await self._recover(worker_id, known, wire)):
            return found
        if self._cursors.wants_mark() and not await self._is_as_we_left_it(worker_id, known, wire):
            return await self._recover(worker_id, known, wire)
        known.in_doubt = True
        rows = [row for look in looks for row in await look(worker_id, known.epoch, wire)]
        claims = await self._move_keys(claims_of(rows), wire)
        known.in_doubt = False
        if rows:
            known.newest_token = rows[-1][1]
        return claims

    async def _is_as_we_left_it(self, worker_id: WorkerId, known: _WorkerClaims, wire: Wire) -> bool:
        """Note the newest number; returns whether the worker's epoch is the known one."""
        [[newest]], epochs = await wire.fetch_each(
            (self._statements["newest_number"], None), (self._statements["epoch"], {"worker": worker_id})
        )
        self._cursors.mark(newest)
        return epochs == [(known.epoch,)]

    async def _look(self, limits: dict[str, int], worker_id: WorkerId, epoch: int, wire: Wire) -> list[Row]:
        params: Params = {
            "worker": worker_id,
            "epoch": epoch,
            "queues": text_array(list(limits)),
            "limits": number_array(limits.values()),
            "now": self._clock.now() if self._clock else None,
        }
        began = time.monotonic()
        if not self._cursors.wants_full_look(limits):
            is_back = self._cursors.wants_look_back()
            starts_of = self._cursors.earlier_starts if is_back else self._cursors.starts
            starts = text_array([number_array(starts_of(queue)) for queue in limits])
            rows = await self._look_onward(limits, wire, {**params, "starts": starts})
            self._cursors.looked(limits, map(_place, rows))
            if is_back:
                self._cursors.looked_back(time.monotonic() - began)
            if rows or not self._cursors.wants_full_look(limits):
                return rows
            began = time.monotonic()
        rows = await wire.fetch(self._statements["claim_front"], params)
        self._cursors.looked(limits, map(_place, rows))
        self._cursors.looked_fully(limits, time.monotonic() - began)
        if rows and _has_returned_jobs(rows):
            self._returns.expected = True
        return rows

    async def _look_onward(self, limits: dict[str, int], wire: Wire, params: Params) -> list[Row]:
        """Look from the marks on; and for jobs that came back before them if there may be any, or too few are found.

        If nothing is found, and a look from the beginning may come next, that one finds them.
        """
        rows: list[Row] = []
        if not self._returns.expected:
            rows = await wire.fetch(self._statements["claim_onward"], params)
            if not rows and (self._cursors.may_look_fully() or not await self._has_returns(limits, wire)):
                return rows
            if rows and (len(rows) >= sum(limits.values()) or not _has_returned_jobs(rows)):
                self._returns.expected = _has_returned_jobs(rows)
                return rows
        taken = Counter(row[3] for row in rows)
        left = {"limits": number_array(limit - taken[queue] for queue, limit in limits.items())}
        self._returns.expected = False
        more = await wire.fetch(self._statements["claim_onward_with_returns"], {**params, **left})
        if more and _has_returned_jobs(more):
            self._returns.expected = True
        return rows + more

    async def _has_returns(self, queues: Iterable[str], wire: Wire) -> bool:
        [[found]] = await wire.fetch(self._statements["has_returns"], {"queues": text_array(list(queues))})
        return bool(found)

    async def _look_at_levels(self, levels: list[Wanted], worker_id: WorkerId, epoch: int, wire: Wire) -> list[Row]:
        """Each level from where we left off; the others of its queue begin where no number is."""
        starts = []
        for want in levels:
            lanes = [_BEYOND_ALL] * len(PRIORITIES)
            if want.level is not None:
                lanes[want.level] = self._cursors.starts(want.queue)[want.level]
            starts.append(number_array(lanes))
        params: Params = {
            "worker": worker_id,
            "epoch": epoch,
            "queues": text_array([want.queue for want in levels]),
            "limits": number_array(want.limit for want in levels),
            "now": self._clock.now() if self._clock else None,
            "starts": text_array(starts),
        }
        return await wire.fetch(self._statements["claim_onward_with_returns"], params)

    async def _recover(self, worker_id: WorkerId, known: _WorkerClaims, wire: Wire) -> list[Claim]:
        """Find the jobs of a claim whose answer was lost."""
        rows = await wire.fetch(self._statements["next_epoch"], {"worker": worker_id})
        if not rows:
            return []
        [[known.epoch, newest_token]] = rows
        await wire.fetch(self._statements["keep_up"])
        lost = {"worker": worker_id, "token": known.newest_token}
        claims = await self._move_keys(claims_of(await wire.fetch(self._statements["lost_claims"], lost)), wire)
        known.wire = wire
        known.in_doubt = False
        known.newest_token = newest_token
        return claims

    async def _move_keys(self, claims: list[Claim], wire: Wire) -> list[Claim]:
        """Release the keys not held while running, and take those held only then; a job denied its key is paused."""
        keyed = [(claim, claim.unique) for claim in claims if claim.unique and _key_moves(claim.unique.states)]
        if not keyed:
            return claims
        rows = await wire.fetch(
            self._statements["settle_keys"],
            {
                "ids": text_array([claim.job_id for claim, _ in keyed]),
                "keys": text_array([unique.key for _, unique in keyed]),
                "wanted": text_array([str(JobState.RUNNING in unique.states) for _, unique in keyed]),
                "now": self._clock.now() if self._clock else None,
            },
        )
        granted = {row[0] for row in rows}
        losers = {
            claim.job_id for claim, unique in keyed if JobState.RUNNING in unique.states and claim.job_id not in granted
        }
        if losers:
            await self._acknowledgements.acknowledge(
                [wait_for_key(claim) for claim in claims if claim.job_id in losers]
            )
        return [claim for claim in claims if claim.job_id not in losers]


def _place(row: Row) -> Place:
    """The place in line of a claimed job."""
    marks = row[27] or 0
    return row[3], row[25], row[26], bool(marks & _FAIR), bool(marks & _CAME_BACK)


def _has_returned_jobs(rows: Sequence[Row]) -> bool:
    """Whether the scanned queues have jobs that came back."""
    return bool((rows[0][27] or 0) & _HAS_RETURNS)


def _key_moves(states: frozenset[JobState]) -> bool:
    """Whether a claim changes who may hold the key."""
    return (JobState.READY in states) != (JobState.RUNNING in states)
