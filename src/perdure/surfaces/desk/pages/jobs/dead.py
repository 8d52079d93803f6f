"""Dead letters by group, with first seen and trend. A probe requeues one job before the whole group is requeued."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace
from starlette.responses import Response

from perdure.domain.jobs.states import JobState
from perdure.errors import ConflictError
from perdure.operate.search import format_search
from perdure.storage.records import JobFilter, Page
from perdure.surfaces.desk.pages.jobs.jobs import attempts_shown, read_search
from perdure.surfaces.desk.rooms import Room
from perdure.surfaces.desk.visit import Visit

room = Room("dead")
_ROWS_PER_PAGE: Final = 50
_DEAD: Final = frozenset({JobState.DEAD})


@room.page("/dead")
async def groups(visit: Visit) -> Response:
    """The groups of dead letters, last failure first."""
    before, text = visit.query("before") or None, visit.query("q").strip()
    wanted = await read_search(visit, text)
    page = await visit.desk.failure_groups(wanted, limit=_ROWS_PER_PAGE, before=before)
    return await visit.page(
        "pages/jobs/dead.html",
        title="Dead letters",
        now=await visit.now(),
        groups=page.groups,
        search=text,
        only_newest=page.only_newest,
        search_of=lambda group: _search_of(wanted, group.fingerprint),
        next=visit.url("/dead", q=text, before=page.next) if page.next else None,
        first=visit.url("/dead", q=text) if before else None,
    )


def _search_of(wanted: JobFilter, fingerprint: str) -> str:
    """The matching dead letters of a group, as a search: commands affect exactly the counted jobs."""
    return format_search(replace(wanted, fingerprint=fingerprint, states=_DEAD))


@room.page("/dead/{fingerprint}")
async def group(visit: Visit) -> Response:
    """One group and its dead letters."""
    fingerprint, before = visit.path("fingerprint"), visit.query("before") or None
    found = await visit.desk.failure_group(fingerprint)
    page = await visit.desk.jobs(JobFilter(fingerprint=fingerprint, states=_DEAD), Page(_ROWS_PER_PAGE, before))
    path = f"/dead/{fingerprint}"
    return await visit.page(
        "pages/jobs/dead_group.html",
        title="Dead letters",
        now=await visit.now(),
        group=found,
        jobs=page.jobs,
        retries=attempts_shown,
        next=visit.url(path, before=page.next) if page.next else None,
        first=visit.url(path) if before else None,
    )


@room.command("/dead/{fingerprint}/probe", confirm="Requeue one job of this group as a probe?")
async def probe(visit: Visit) -> Response:
    """Requeue the newest dead letter of a group, to see whether it succeeds now."""
    found = await visit.desk.failure_group(visit.path("fingerprint"))
    if found.newest is None:
        raise ConflictError(f"group {found.fingerprint} has no more dead letters: nothing was requeued")
    await visit.desk.requeue(found.newest, why=visit.why or "a probe of its group")
    return visit.done("Requeued one job as a probe: this is its page.", back=f"/jobs/{found.newest}")
