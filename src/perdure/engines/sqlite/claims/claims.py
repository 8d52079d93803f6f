"""How a worker claims jobs.

A claim moves the front of a queue from `ready` to `lease` in one transaction, so no job is handed out twice. All claims
of a batch share one token, drawn from a counter that only rises. It keeps up with the clock, and its last digits are
random: a file that is an older copy of itself issues higher tokens than before, and no token twice.

While there is little to do a claim takes the short way, and is not flushed to the disk. It survives the death of any
process regardless. A power cut, which ends every process that shares the file, may undo it: then no worker holds the
job, and it is simply ready.

The rows become claims only after the commit: every other process waits for the work before it.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from perdure.domain.jobs.ids import JobId, WorkerId
from perdure.domain.jobs.job import PRIORITIES, Claim
from perdure.domain.jobs.states import JobState
from perdure.engines.shared.claim_tokens import HIGHEST_TOKEN_BY_CLOCK, TOKENS_PER_MS
from perdure.engines.shared.database.instants import from_micros
from perdure.engines.sqlite.claims.acknowledgements import AcknowledgementPart
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.rows import claim_of, from_document, to_document
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.intake.keys import Keys
from perdure.engines.sqlite.lanes.single_writes import NotNow
from perdure.policy.decide import wait_for_key
from perdure.storage.records import Front, Wanted

_UNIQUE_KEY_COLUMN: Final = 7  # the place of the unique key in a row
# After a claim of so few jobs the next one takes the short way: there is little to do, and a slot waits for it.
_FEW_CLAIMS: Final = 10


class _Taken(Struct):
    """The rows claimed in one transaction, with the queue of each, and those that must not run after all."""

    token: int
    claimed_at: datetime
    rows: list[tuple[str, list[Any]]] = []
    denied: frozenset[JobId] = frozenset()

    def claim(self, queue: str, row: list[Any]) -> Claim:
        """One of its rows as a claim."""
        return claim_of(row[:-2], self.token, queue, self.claimed_at)

    def claims(self) -> list[Claim]:
        """Those that may run."""
        return [self.claim(queue, row) for queue, row in self.rows if row[0] not in self.denied]


class ClaimPart:
    """Claiming of the store."""

    def __init__(self, database: Database, acknowledgement: AcknowledgementPart) -> None:
        self._database = database
        self._acknowledgement = acknowledgement
        self._sql = database.statements("claims/claims.sql")
        self._keys = Keys(database)
        self._was_quiet = True

    async def claim(self, worker_id: WorkerId, wanted: Sequence[Wanted]) -> list[Claim]:
        """Claim ready jobs for a live worker, for each wanted queue: by priority, then by their place in line."""
        wanted = sorted((want for want in wanted if want.limit > 0), key=lambda want: want.level is None)
        if not wanted:
            return []

        def work(transaction: Transaction) -> _Taken:
            return self._claim(transaction, worker_id, wanted)

        taken: _Taken | None = None
        if self._was_quiet:
            with suppress(NotNow):
                taken = self._database.write_now(work, flushes=False)
        if taken is None:
            taken = await self._database.write(work)
        self._was_quiet = len(taken.rows) <= _FEW_CLAIMS
        return taken.claims()

    async def fronts(self, queues: Sequence[str], depth: int) -> list[Front]:
        """What comes next in each priority of these queues."""

        def look(transaction: Transaction) -> list[Front]:
            return [
                Front(queue, priority, from_micros(since))
                for queue in queues
                for priority in PRIORITIES
                for (since,) in transaction.run(
                    self._sql["fronts"], {"queue": queue, "priority": priority, "depth": depth}
                )
            ]

        return await self._database.read(look)

    async def leases(self, worker_id: WorkerId) -> list[tuple[JobId, int]]:
        """Job and token of all leases under this worker's id."""
        params = {"worker_id": worker_id}
        ((document,),) = await self._database.read(lambda transaction: transaction.run(self._sql["leases"], params))
        return [(job_id, token) for job_id, token in from_document(document)]

    async def claims_held(self, worker_id: WorkerId, job_ids: Sequence[JobId]) -> list[Claim]:
        """The claims of this worker on these jobs, if any."""
        params = {"worker_id": worker_id, "ids": to_document(job_ids)}
        ((document,),) = await self._database.read(
            lambda transaction: transaction.run(self._sql["claims_held"], params)
        )
        return [
            claim_of(row, token, queue, from_micros(claimed_at))
            for *row, token, queue, claimed_at in from_document(document)
        ]

    async def checkpoint(self, claim: Claim, cursor: str | None) -> bool:
        """Store the job's checkpoint, while its claim is held."""
        kept = {"job_id": claim.job_id, "token": claim.token, "cursor": cursor}
        return await self._database.write(lambda transaction: transaction.change(self._sql["checkpoint"], kept) > 0)

    def _claim(self, transaction: Transaction, worker_id: WorkerId, wanted: Sequence[Wanted]) -> _Taken:
        taken = _Taken(0, from_micros(transaction.now))
        for want in wanted:
            front = {"queue": want.queue, "worker_id": worker_id, "limit": want.limit}
            if want.level is not None:
                front["priority"] = want.level
            of_level = "" if want.level is None else "_of_level"
            ((document, last_token),) = transaction.run(self._sql[f"pick{of_level}"], front)
            if not (rows := from_document(document)):
                continue
            if not taken.token:
                taken.token = _next_token(last_token, transaction.now)
                transaction.change(self._sql["spend_token"], {"token": taken.token})
            job_id, *_, priority, turn = rows[-1]
            stretch = {"queue": want.queue, "priority": priority, "turn": turn, "job_id": job_id}
            held = {"token": taken.token, "worker_id": worker_id, "now": transaction.now}
            transaction.change(self._sql[f"hold{of_level}"], stretch | held)
            transaction.change(self._sql[f"take_out{of_level}"], stretch)
            taken.rows += [(want.queue, row) for row in rows]
        self._move_keys(transaction, taken)
        return taken

    def _move_keys(self, transaction: Transaction, taken: _Taken) -> None:
        """Take or release the keys of jobs whose key differs between waiting and running."""
        claims = [taken.claim(queue, row) for queue, row in taken.rows if row[_UNIQUE_KEY_COLUMN] is not None]
        moves = [
            (claim.job_id, claim.unique, JobState.RUNNING)
            for claim in claims
            if claim.unique is not None
            and (JobState.READY in claim.unique.states) is not (JobState.RUNNING in claim.unique.states)
        ]
        if moves and (denied := self._keys.move(transaction, moves)):
            held_back = [wait_for_key(claim) for claim in claims if claim.job_id in denied]
            self._acknowledgement.apply(transaction, held_back)
            taken.denied = frozenset(denied)


def _next_token(last: int, now: int) -> int:
    """Above the last one, not below the time in milliseconds times 2^20, and by chance in between."""
    by_clock = min(now // 1_000 * TOKENS_PER_MS, HIGHEST_TOKEN_BY_CLOCK)
    return max((last // TOKENS_PER_MS + 1) * TOKENS_PER_MS, by_clock) + secrets.randbelow(TOKENS_PER_MS)
