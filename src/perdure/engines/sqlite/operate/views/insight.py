"""Queries about jobs, which wait for no writer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from msgspec.structs import replace

from perdure.domain.gate import Cost
from perdure.domain.gate_record import GateRecord
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Attempt, JobView
from perdure.domain.jobs.states import JobState
from perdure.domain.stored_words import read_word
from perdure.engines.shared.batch_sizes import JOBS_LOOKED_UP_SINGLY, JOBS_PER_LOOK
from perdure.engines.shared.database.instants import from_micros, maybe_moment
from perdure.engines.shared.operate.bounds import Bounds
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.rows import attempt_of, from_document, to_document, view_of
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.operate.views.filters import Selection, Selector
from perdure.engines.sqlite.operate.views.queue_states import AFTER_ALL, QueueStates
from perdure.policy.limits.gate_record import StoredRecord, records_of
from perdure.storage.records import Count, JobFilter, Page, Reach, Searched

_LONG_LINE_JOBS: Final = 20_000
_NEWEST_JOBS_SEARCHED: Final = 2_000  # newest jobs among which ready ones are looked for
_OF_PLACE: Final = {"states", "before", "floor"}
_ID: Final = "SELECT place.job_id"


class InsightPart:
    """Insight into the store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.statements("operate/views/insight.sql")
        self._selector = Selector(database)
        self._queue_states = QueueStates(database)

    async def now(self) -> datetime:
        """The clock by which jobs become due."""
        return self._database.clock.now()

    async def job(self, job_id: JobId) -> JobView | None:
        """One job, in any place."""
        found = await self.jobs(JobFilter(ids=(job_id,)), Page(limit=1))
        return found[0] if found else None

    async def jobs(self, which: JobFilter, page: Page) -> list[JobView]:
        """The jobs that match, highest id first: the best of each place, put together."""
        reach = page.skipped + page.limit

        def look(transaction: Transaction) -> list[JobView]:
            if not page.skipped:
                return self._views(transaction, self._narrowed(transaction, which), page.before, page.limit)
            ids = self._ids(transaction, self._narrowed(transaction, which), page.before, reach)[page.skipped :]
            return self._views(transaction, JobFilter(ids=ids), None, page.limit) if ids else []

        def look_at_picked(transaction: Transaction) -> list[JobView]:
            seen = self._picked(transaction, which, page.before, reach)[page.skipped :]
            return self._views(transaction, JobFilter(ids=seen), None, page.limit) if seen else []

        is_picked = which.ids is None and (which.mark is not None or which.fingerprint is not None)
        return await self._database.read(look_at_picked if is_picked else look)

    async def search(self, which: JobFilter, page: Page, reach: Reach) -> Searched:
        """The same, within this reach."""
        if page.number is not None or not which.must_look:
            return Searched(await self.jobs(which, page))

        def look(transaction: Transaction) -> Searched:
            narrowed = self._narrowed(transaction, which)
            if not narrowed.must_look:
                return Searched(self._views(transaction, narrowed, page.before, page.limit))
            walk = self._walk_picked if which.mark is not None or which.fingerprint is not None else self._walk
            found, behind = walk(transaction, narrowed, page, Bounds(reach))
            if behind is None:
                return Searched(found)
            made_at = transaction.run(self._selector.made_at, {"id": behind})
            return Searched(found, behind, from_micros(made_at[0][0]) if made_at else None)

        return await self._database.read(look)

    def _walk(
        self, transaction: Transaction, which: JobFilter, page: Page, bounds: Bounds
    ) -> tuple[list[JobView], JobId | None]:
        """The jobs that match, stretch by stretch, and behind which job the search ended early."""
        found: list[JobView] = []
        before = page.before
        while True:
            selections = list(self._selections(transaction, which, before))
            floor = self._floor(transaction, selections, before, bounds.step)
            found += self._views(transaction, which, before, page.limit - len(found), floor)
            if floor is None or len(found) >= page.limit:
                return found, None
            before = floor
            if bounds.are_reached():
                return found, before

    def _floor(
        self, transaction: Transaction, selections: list[Selection], before: JobId | None, step: int
    ) -> JobId | None:
        """The lowest id of a step that reads at most so many jobs per place; None: the rest fits into one step."""
        params = {"before": before or AFTER_ALL, "step": step - 1}
        walks = {selection.walk for selection in selections if selection.walk}
        return max((row[0] for walk in walks for row in transaction.run(walk, params)), default=None)

    def _walk_picked(
        self, transaction: Transaction, which: JobFilter, page: Page, bounds: Bounds
    ) -> tuple[list[JobView], JobId | None]:
        """The same along the jobs with the mark or fingerprint."""
        found: list[JobView] = []
        before = page.before
        while ids := self._queue_states.picked(transaction, which, before, JOBS_PER_LOOK):
            found += self._views(transaction, replace(which, ids=ids), None, page.limit - len(found))
            before = ids[-1]
            if len(found) >= page.limit or len(ids) < JOBS_PER_LOOK:
                break
            if bounds.are_reached(len(ids)):
                return found, before
        return found, None

    async def attempts(self, job_id: JobId) -> list[Attempt]:
        """The attempts of a job that did not succeed, oldest first."""

        def look(transaction: Transaction) -> list[Attempt]:
            ((document,),) = transaction.run(self._sql["attempts"], {"job_id": job_id})
            return [attempt_of(row) for row in from_document(document)]

        return await self._database.read(look)

    async def costs(self, job_id: JobId) -> list[Cost]:
        """What a job has spent from each budget."""

        def look(transaction: Transaction) -> list[Cost]:
            return [Cost(*row) for row in transaction.run(self._sql["costs"], {"job_id": job_id})]

        return await self._database.read(look)

    async def gate_records(self, job_id: JobId) -> list[GateRecord]:
        """The gates that the attempts of a job have met."""

        def look(transaction: Transaction) -> list[GateRecord]:
            rows = transaction.run(self._sql["gate_records"], {"job_id": job_id})
            return records_of(StoredRecord(text, maybe_moment(begun), is_over == 1) for text, begun, is_over in rows)

        return await self._database.read(look)

    async def key_holder(self, key: str) -> JobId | None:
        """The job that holds a unique key now."""

        def look(transaction: Transaction) -> JobId | None:
            rows = transaction.run(self._sql["key_holder"], {"key": key, "now": transaction.now})
            return JobId(rows[0][0]) if rows else None

        return await self._database.read(look)

    async def counts(self, cap: int = 10_000) -> list[Count]:
        """Counts of jobs by queue and state, at most `cap` for each."""

        def look(transaction: Transaction) -> list[Count]:
            counted = []
            for statement, params in (
                ("count_ready", {"cap": cap}),
                ("count_lease", {}),
                ("count_parked", {"cap": cap}),
                ("count_finished", {"cap": cap}),
            ):
                for queue, state, jobs in transaction.run(self._sql[statement], params):
                    counted.append(Count(queue, read_word(JobState, state), min(jobs, cap), capped=jobs > cap))
            return sorted(counted, key=lambda count: (count.queue, count.state))

        return await self._database.read(look)

    def _narrowed(self, transaction: Transaction, which: JobFilter) -> JobFilter:
        """The same filter by ids, if few jobs have finished in the time asked for: all others are passed over."""
        if not which.has_window or which.ids is not None:
            return which
        ids = self._queue_states.finished_in_window(transaction, which, JOBS_LOOKED_UP_SINGLY)
        return which if ids is None else replace(which, ids=ids)

    def _picked(self, transaction: Transaction, which: JobFilter, before: JobId | None, limit: int) -> list[JobId]:
        """The newest jobs with the mark or fingerprint, a batch after the other until there are enough that match."""
        found: list[JobId] = []
        while len(found) < limit and (ids := self._queue_states.picked(transaction, which, before, JOBS_PER_LOOK)):
            found += self._ids(transaction, replace(which, ids=ids), None, limit - len(found))
            before = ids[-1]
        return found

    def _views(
        self,
        transaction: Transaction,
        which: JobFilter,
        before: JobId | None,
        limit: int,
        floor: JobId | None = None,
    ) -> list[JobView]:
        seen: list[JobView] = []
        for found in self._selections(transaction, which, before, floor):
            selection = self._sorted_first(transaction, found, limit) if _asks_for_place_only(found) else found
            chosen = f"{self._sql[selection.place]} {selection.newest_first}"
            ((document,),) = transaction.run(f"{self._sql['gather']} ({chosen})", selection.params | {"limit": limit})
            seen += [view_of(row) for row in from_document(document)]
        seen.sort(key=lambda view: view.id, reverse=True)
        return seen[:limit]

    def _ids(self, transaction: Transaction, which: JobFilter, before: JobId | None, limit: int) -> list[JobId]:
        """The same as `_views`, but only the ids are read."""
        seen: list[JobId] = []
        for selection in self._selections(transaction, which, before):
            rows = transaction.run(f"{_ID} {selection.newest_first}", selection.params | {"limit": limit})
            seen += [row[0] for row in rows]
        return sorted(seen, reverse=True)[:limit]

    def _selections(
        self, transaction: Transaction, which: JobFilter, before: JobId | None, floor: JobId | None = None
    ) -> Iterator[Selection]:
        also = {name: value for name, value in (("before", before), ("floor", floor)) if value is not None}
        for selection in self._selector.select(which, also=also):
            is_line = selection.place == "ready"
            if is_line and transaction.run(self._sql["is_long"], {"length": _LONG_LINE_JOBS})[0][0]:
                # A long line would have to be sorted by id. The newest jobs stand in it, so look among the newest.
                yield self._selector.selection("ready", (), selection.params, by_job=True)
            elif selection.place == "parked" and self._are_many(transaction, selection.params):
                yield self._selector.selection("parked", ("walked_states",), selection.params)
            else:
                yield selection

    def _sorted_first(self, transaction: Transaction, selection: Selection, limit: int) -> Selection:
        """The same jobs by their ids: these tables are in another order, and to sort all that is shown costs more."""
        params = {"before": AFTER_ALL, "floor": "", "reach": _NEWEST_JOBS_SEARCHED, **selection.params, "limit": limit}
        names = ("newest_parked",) if selection.place == "parked" else ("ready_among_newest", "newest_ready")
        ids: list[JobId] = []
        for name in names:  # the newest jobs are often the end of the line: then the line need not be looked through
            ids = [row[0] for row in transaction.run(self._sql[name], params)]
            if len(ids) >= limit:
                break
        return self._selector.selection(selection.place, (), {"ids": to_document(ids)})

    def _are_many(self, transaction: Transaction, params: Mapping[str, Any]) -> bool:
        """Whether the jobs parked in the states asked for are more than one would want to sort."""
        if "states" not in params or "ids" in params:
            return False
        asked = {"states": params["states"], "length": _LONG_LINE_JOBS}
        return bool(transaction.run(self._sql["are_many_parked"], asked)[0][0])


def _asks_for_place_only(selection: Selection) -> bool:
    """Whether ready jobs are asked for, or parked ones of some states, and nothing else of them."""
    needs = {"parked": {"states"}, "ready": set[str]()}.get(selection.place)
    return needs is not None and needs <= selection.params.keys() <= _OF_PLACE
