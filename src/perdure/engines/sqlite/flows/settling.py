"""What the end of a job means for its parent and for its children (C5 to C8).

A child's end is written into its row of the family and counted there, once. If the family is settled by it, the parent
that waits for this family is made ready; a chain sleeps on, and its next link is made. A parent's end cancels the
children that are not final, and theirs. A child that had failed and gets a new life is taken out of the count, and is
waited for again. All of it happens in the transaction in which the job moves, and only for jobs with families.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.outcome import ERROR_LIMIT_CHARACTERS
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.jobs.transition import Transition
from perdure.domain.operate.audit import SYSTEM
from perdure.engines.shared.batch_sizes import ENDS_AT_ONCE
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.rows import clean, from_document, to_document, warnings_text
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.fleet.upkeep import UpkeepPart
from perdure.engines.sqlite.flows.families import FamilyPart, family_of
from perdure.engines.sqlite.flows.linking import Linking
from perdure.engines.sqlite.operate.commands.audit import Audit
from perdure.engines.sqlite.operate.commands.cancels import ACTIVE_PLACES, Cancels, Chosen, chosen_of
from perdure.policy.consequences import PARENT_DELETED, PARENT_ENDED

_NO_LIMIT: Final = -1

End = tuple[JobId, JobState, str | None, str | None, str | None]  # with result, error and warnings


class Settling:
    """Settles ends between parents and children."""

    def __init__(self, database: Database, upkeep: UpkeepPart, families: FamilyPart) -> None:
        self._database = database
        self._sql = database.statements("flows/settling.sql")
        self._upkeep = upkeep
        self._linking = Linking(database, families)
        self._cancels = Cancels(database)
        self._audit = Audit(database)

    def settle_transitions(
        self, transaction: Transaction, ended: Sequence[Transition], *, audits: bool
    ) -> tuple[tuple[str, str], ...]:
        """Settle final claims whose jobs have a parent or children; `audits` the jobs that this cancels.

        Returns the links of chains that it made, each by its queue and kind.
        """
        ends = [
            (move.claim.job_id, move.to, move.result, _error_of(move), warnings_text(move))
            for move in ended
            if move.claim.parent is not None
        ]
        parents = {move.claim.job_id: PARENT_ENDED[move.to] for move in ended if move.is_parent or move.claim.is_parent}
        return tuple(self._settle(transaction, ends, self._cancel_children(transaction, parents, audits=audits)))

    def settle_cancelled(self, transaction: Transaction, jobs: Sequence[Chosen], why: str | None) -> None:
        """Settle jobs that were cancelled."""
        ends = _cancelled([job for job in jobs if job.parent is not None], why)
        parents = {job.job_id: PARENT_ENDED[JobState.CANCELLED] for job in jobs if job.is_parent}
        self._settle(transaction, ends, self._cancel_children(transaction, parents))

    def settle_deleted(self, transaction: Transaction, jobs: Sequence[Chosen], why: str) -> None:
        """Update the families of jobs about to be deleted; all their active children are cancelled."""
        ends = _cancelled([job for job in jobs if job.parent is not None], why)
        parents = {job.job_id: PARENT_DELETED for job in jobs if job.is_parent}
        self._settle(transaction, ends, self._cancel_children(transaction, parents, all_families=True))

    def settle_set_aside(self, transaction: Transaction, jobs: Sequence[Chosen], why: str) -> None:
        """Settle jobs that are to be forgotten once their children are cancelled: only their own parents count it."""
        self._settle(transaction, _cancelled([job for job in jobs if job.parent is not None], why), [])

    def has_many_active(self, transaction: Transaction, parents: Sequence[JobId], many: int) -> bool:
        """Whether these have more children that are not final than so many."""
        return len(self._active_children(transaction, parents, many + 1, all_families=True)) > many

    def cancel_some(self, parents: Sequence[JobId], limit: int, transaction: Transaction) -> int:
        """Cancel this many active children of jobs to be deleted, with all below them; returns how many."""
        reasons = dict.fromkeys(parents, PARENT_DELETED)
        children = self._active_children(transaction, parents, limit, all_families=True)
        ends = self._cancel(transaction, children, reasons)
        below = {child.job_id: PARENT_ENDED[JobState.CANCELLED] for child in children if child.is_parent}
        self._settle(transaction, ends, self._cancel_children(transaction, below))
        return len(children)

    async def settle_joined(self, job_ids: Collection[JobId] | None = None) -> int:
        """Count the ends of jobs to which children were joined; the reader checks first."""
        name = "ended_joined" if job_ids is None else "ended_joined_of"
        statement, params = (
            self._sql[name],
            {"ids": to_document(sorted(job_ids or ())), "limit": ENDS_AT_ONCE},
        )

        def settle(transaction: Transaction) -> int:
            ends: list[End] = [(row[0], JobState(row[1]), *row[2:]) for row in transaction.run(statement, params)]
            self._settle(transaction, ends, [])
            transaction.change(self._sql["close_joined"], {"ids": to_document([end[0] for end in ends])})
            return len(ends)

        if not await self._database.read(lambda transaction: transaction.run(statement, params)):
            return 0
        return await self._database.write(settle)

    def revive(self, transaction: Transaction, jobs: Sequence[JobId]) -> None:
        """Let families wait again for children that had failed, and get a new life."""
        joined = [child_id for (child_id,) in transaction.run(self._sql["reopen_joined"], {"ids": to_document(jobs)})]
        ids = to_document([*jobs, *joined])
        revived = Counter(transaction.run(self._sql["revive_children"], {"ids": ids}))
        if revived:
            rows = to_document([(*family, 0, -count) for family, count in revived.items()])
            transaction.run(self._sql["count_ends"], {"rows": rows})

    def _cancel_children(
        self, transaction: Transaction, parents: Mapping[JobId, str], *, all_families: bool = False, audits: bool = True
    ) -> list[End]:
        """Cancel the active children of these parents, for the reason given with each, and theirs in turn."""
        seen = set(parents)
        ends: list[End] = []
        while parents:
            active = self._active_children(transaction, list(parents), _NO_LIMIT, all_families=all_families)
            children = [child for child in active if child.job_id not in seen]
            seen.update(child.job_id for child in children)
            ends += self._cancel(transaction, children, parents, audits=audits)
            parents = {child.job_id: PARENT_ENDED[JobState.CANCELLED] for child in children if child.is_parent}
            all_families = False
        return ends

    def _active_children(
        self, transaction: Transaction, parents: Sequence[JobId], limit: int, *, all_families: bool
    ) -> list[Chosen]:
        params = {"ids": to_document(list(parents)), "all": all_families, "limit": limit}
        ((document,),) = transaction.run(self._sql["active_children"], params)
        return [chosen_of(row) for row in from_document(document)]

    def _cancel(
        self, transaction: Transaction, children: Sequence[Chosen], why: Mapping[JobId, str], *, audits: bool = True
    ) -> list[End]:
        """Cancel children, for the reason given with the parent of each."""
        by_reason: dict[str, list[Chosen]] = defaultdict(list)
        for child in children:
            if child.parent is not None:
                by_reason[why[child.parent]].append(child)
        ends: list[End] = []
        for reason, some in by_reason.items():
            if audits:
                self._audit.about_children(transaction, [child.job_id for child in some])
            self._cancels.cancel(transaction, some, ACTIVE_PLACES, why=reason, by=SYSTEM)
            ends += _cancelled(some, reason)
        return ends

    def _settle(self, transaction: Transaction, ends: list[End], more: list[End]) -> list[tuple[str, str]]:
        """Count ends in their families, and wake the parents that have nothing to wait for any more.

        Returns the links of chains that it made.
        """
        links: list[tuple[str, str]] = []
        if not (ends := ends + more):
            return links
        counts: dict[tuple[JobId, str], list[int]] = defaultdict(lambda: [0, 0])
        for parent, key, fate in transaction.run(self._sql["settle_children"], {"rows": to_document(ends)}):
            counts[parent, key][fate != JobState.SUCCEEDED] += 1
        if not counts:
            return links
        rows = to_document([(*family, *counted) for family, counted in counts.items()])
        settled: list[tuple[JobId, str]] = []
        for parent, next_link, *columns in transaction.run(self._sql["count_ends"], {"rows": rows}):
            view = family_of(*columns)
            goes_on = next_link is not None and view.succeeded == view.total
            if not view.is_settled:
                continue
            if goes_on and (link := self._linking.go_on(transaction, parent, view.key, next_link)) is not None:
                links.append((link.queue, link.kind))
            else:
                settled.append((parent, view.key))
        if settled:
            ((document,),) = transaction.run(self._sql["waiting_parents"], {"rows": to_document(settled)})
            sleepers = {row[0]: row for row in from_document(document)}  # one may wait for two of them
            self._upkeep.wake(transaction, list(sleepers.values()), Reason.CHILDREN_SETTLED)
        return links


def _cancelled(jobs: Iterable[Chosen], why: str | None) -> list[End]:
    return [(job.job_id, JobState.CANCELLED, None, why, None) for job in jobs]


def _error_of(move: Transition) -> str | None:
    """The error that a parent sees for a child that did not succeed."""
    if move.to is JobState.SUCCEEDED:
        return None
    if move.to is JobState.CANCELLED and move.note:
        return clean(move.note)
    if move.failure is None:
        return None if move.note is None else clean(move.note)
    return clean(f"{move.failure.error_type}: {move.failure.message}"[:ERROR_LIMIT_CHARACTERS])
