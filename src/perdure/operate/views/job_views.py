"""Jobs as the desk shows them: one in full, lists, counts, groups of failures."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from perdure.domain.duration import Duration, parse_duration
from perdure.domain.flows.flow import Child, StepRecord
from perdure.domain.jobs.ids import JobId, as_job_id
from perdure.domain.jobs.job import JobView
from perdure.domain.jobs.log_lines import LINES_KEPT
from perdure.domain.jobs.states import JobState
from perdure.errors import ArgumentError
from perdure.operate.desk_base import JOBS_PER_COMMAND_LIMIT, ROWS_PER_PAGE_LIMIT, DeskBase, checked_filter
from perdure.operate.masking import shown_child, shown_job, shown_step
from perdure.operate.records import JobDetail, JobPage, Why
from perdure.operate.search.parse import parse_search
from perdure.operate.search.suggest import Suggestion, suggest
from perdure.operate.views.failure_groups import FailureGroup, GroupPage, groups_page, one_group
from perdure.operate.views.flow_views import FlowPage, read_flows
from perdure.operate.views.state_words import states_meant
from perdure.operate.why.why import why
from perdure.storage.records import JobFilter, Overdue, Page, Tally

MOST_LINES: Final = 10_000
_EVERYTHING: Final = JobFilter()
_FIRST_PAGE: Final = Page()
_DEAD: Final = frozenset({JobState.DEAD})


class JobViews(DeskBase):
    """The part of the desk that shows jobs."""

    async def job(self, job_id: str, *, lines: int = LINES_KEPT) -> JobDetail:
        """One job with its attempts, families, steps, progress, newest log lines, costs and gates; or NotFoundError.

        `job_id` is its id or its ref.
        """
        if not 0 <= lines <= MOST_LINES:
            raise ArgumentError("lines", f"must be from 0 to {MOST_LINES:,}, got {lines}")
        job = await self._found(job_id)
        known = job.id
        attempts, families = await self._store.attempts(known), await self._store.families(known)
        steps = [shown_step(step) for step in (await self._store.steps([known])).get(known, [])]
        progress = await self._store.progress(known)
        logged = await self._store.lines(known, lines) if lines else ()
        costs, gates = await self._store.costs(known), await self._store.gate_records(known)
        return JobDetail(
            shown_job(job),
            tuple(attempts),
            tuple(families),
            tuple(steps),
            progress,
            tuple(logged),
            tuple(costs),
            tuple(gates),
        )

    async def job_by_ref(self, ref: str) -> JobView:
        """The job with this external name; raises NotFoundError."""
        return shown_job(await self._named_by(ref))

    async def why(self, job_id: str) -> Why:
        """Why a job is not running, and what to do about it; raises NotFoundError."""
        found = await why(self._store, await self._found(job_id))
        return replace(found, job=shown_job(found.job))

    async def meaning(self, words: str | Iterable[str], kind: str | None = None) -> JobFilter:
        """The filter for states in perdure's words or in those of an app; raises ArgumentError.

        An app's word means the states of the kind that uses it; if several kinds do, `kind` must say which.
        """
        return await states_meant(self._store, words, kind)

    async def jobs(self, which: JobFilter = _EVERYTHING, page: Page = _FIRST_PAGE) -> JobPage:
        """The jobs that match, newest first."""
        checked_filter(which)
        if not isinstance(page, Page):
            raise ArgumentError("page", f"must be a Page, as in Page(limit=50), got {page!r}")
        if not 1 <= page.limit <= ROWS_PER_PAGE_LIMIT:
            raise ArgumentError("limit", f"must be from 1 to {ROWS_PER_PAGE_LIMIT}, got {page.limit}")
        if page.number is None:
            searched = await self._searched(which, replace(page, limit=page.limit + 1), self._reach)
            found = searched.jobs
            more = found[page.limit :]
            if not more and searched.behind is not None:
                return JobPage(tuple(found), searched.behind, searched.back_to)
        else:
            found = await self._store.jobs(which, page)
            more = await self._store.jobs(which, Page(1, found[-1].id)) if len(found) == page.limit else []
        shown = tuple(shown_job(job) for job in found[: page.limit])
        return JobPage(shown, shown[-1].id if more else None)

    async def children(self, job_id: str) -> list[JobId]:
        """The ids of the jobs that a job has spawned, in order, at most 10,000; raises NotFoundError."""
        known = (await self._found(job_id)).id
        found: list[JobId] = []
        for family in await self._store.families(known):
            room = JOBS_PER_COMMAND_LIMIT - len(found)
            found += [child.job_id for child in await self._store.children(known, family.key, 0, room)] if room else []
        return found

    async def children_of(self, job_id: str, key: str, *, limit: int = 100) -> list[Child]:
        """The first children of one key, in their order, as their parent sees them."""
        if not 1 <= limit <= ROWS_PER_PAGE_LIMIT:
            raise ArgumentError("limit", f"must be from 1 to {ROWS_PER_PAGE_LIMIT}, got {limit}")
        return [shown_child(child) for child in await self._store.children(await self._id_of(job_id), key, 0, limit)]

    async def fates_of(self, job_id: str, key: str, *, limit: int = 1_000) -> list[Child]:
        """The first children of one key without results, errors and warnings: cheap also for many."""
        if not 1 <= limit <= JOBS_PER_COMMAND_LIMIT:
            raise ArgumentError("limit", f"must be from 1 to {JOBS_PER_COMMAND_LIMIT}, got {limit}")
        return list(await self._store.fates(await self._id_of(job_id), key, limit))

    async def flows(self, *, limit: int = 50, before: str | None = None) -> FlowPage:
        """The jobs that wait (for children, events, answers, polls or a time), newest first, with their families.

        At most 100; the next page is `before=page.next`.
        """
        return await read_flows(self._store, limit, None if before is None else as_job_id(before))

    async def steps(self, ids: Iterable[str]) -> dict[JobId, tuple[StepRecord, ...]]:
        """The steps of several jobs, in the order in which they began; for a list of jobs.

        Jobs are named by id. Those without steps, and those that do not exist, are left out.
        """
        wanted = list(dict.fromkeys(as_job_id(job_id) for job_id in ids))
        if len(wanted) > ROWS_PER_PAGE_LIMIT:
            raise ArgumentError("ids", f"may name at most {ROWS_PER_PAGE_LIMIT} jobs, got {len(wanted)}")
        found = await self._store.steps(wanted) if wanted else {}
        return {job_id: tuple(map(shown_step, steps)) for job_id, steps in found.items() if steps}

    async def dead_letters(self, which: JobFilter = _EVERYTHING, page: Page = _FIRST_PAGE) -> JobPage:
        """The dead jobs that match, newest first."""
        return await self.jobs(replace(checked_filter(which), states=_DEAD), page)

    async def failure_groups(
        self, which: JobFilter = _EVERYTHING, *, limit: int = 50, before: str | None = None
    ) -> GroupPage:
        """The dead letters that match, by group: same kind, error type and message but for numbers and ids.

        The group that failed last comes first; the next page is `before=page.next`.
        """
        states = checked_filter(which).states
        if states is not None and JobState.DEAD not in states:
            raise ArgumentError("state", "must be dead: groups are of dead letters; or leave it out")
        return await groups_page(self._store, which, limit, before)

    async def failure_group(self, fingerprint: str) -> FailureGroup:
        """One group of failures, also if it has no dead letters now; raises NotFoundError."""
        return await one_group(self._store, fingerprint)

    async def filter(self, search: str) -> JobFilter:
        """The filter that a search means, such as `kind:charge state:dead args.user.id=42`; raises ArgumentError."""
        return parse_search(search, now=await self.now())

    async def suggestions(self, text: str, cursor: int | None = None) -> list[Suggestion]:
        """What the word at the cursor of a search could become: keys, states, kinds, queues, tags, paths."""
        return await suggest(self._store, text, cursor)

    async def count(self, which: JobFilter = _EVERYTHING, *, cap: int = 10_000) -> Tally:
        """How many jobs match.

        At most `cap` jobs are read in each queue and state, the last to finish first, or `cap` in all if the filter
        names a mark or ids; if there are more, the answer is `capped`: a lower bound.
        """
        [tally] = await self._store.count(checked_filter(which), (), cap)
        return tally

    async def count_by(self, *by: str, which: JobFilter = _EVERYTHING, cap: int = 10_000) -> list[Tally]:
        """How many jobs match, for each kind, state or queue, or each combination; groups without jobs are left out.

        `cap` is that of `count`.
        """
        if not by:
            raise ArgumentError("by", 'is missing: name "kind", "state", "queue", or several of them')
        return await self._store.count(checked_filter(which), by, cap)

    async def overdue(self, by: Duration = 0, *, limit: int = 1_000) -> list[Overdue]:
        """Parked jobs that are due since at least `by` and not ready yet.

        The oldest due comes first. Between two promotions, a second at most, every job that falls due is listed.
        """
        if not 1 <= limit <= JOBS_PER_COMMAND_LIMIT:
            raise ArgumentError("limit", f"must be from 1 to {JOBS_PER_COMMAND_LIMIT}, got {limit}")
        return await self._store.overdue(limit, parse_duration("by", by))
