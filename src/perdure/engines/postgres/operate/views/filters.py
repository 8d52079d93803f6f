"""From a JobFilter to conditions in SQL.

A job stands in one of four tables, so a list of jobs is the union of four lists. Each is read by its own index in the
order of ids and ends at the limit, so no list is ever longer than what is shown; tables in which no job can match are
left out. Conditions are fixed pieces of text; every value is a parameter.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import FINAL, PARKED, JobState
from perdure.domain.operate.condition import Condition
from perdure.engines.postgres.database.arrays import text_array
from perdure.engines.postgres.operate.views.conditions import where_params
from perdure.storage.records import JobFilter

KNOWN: Final = frozenset(JobState)
DEAD: Final = frozenset({JobState.DEAD})
BEFORE_ALL: Final = JobId("00000000-0000-0000-0000-000000000000")


class Place(Struct, frozen=True):
    """A table of jobs, and the states they can have there; `keeps_state`: in a column of its own."""

    table: str
    states: frozenset[JobState]
    keeps_state: bool = False


PLACES: Final = (
    Place("ready", frozenset({JobState.READY})),
    Place("lease", frozenset({JobState.RUNNING})),
    Place("parked", PARKED, keeps_state=True),
    Place("finished", FINAL, keeps_state=True),
)


class Selection(Struct):
    """The places in which jobs may match, with the conditions there, and the parameters of all of them.

    `where` are conditions besides, on what jobs carry.
    """

    conditions: dict[str, list[str]]
    params: dict[str, object]
    where: tuple[Condition, ...] = ()


def select(which: JobFilter, among: frozenset[JobState] | None = None) -> Selection:
    """Where jobs that match are to be found, and under which conditions; `among`: only those of these states.

    A filter without states means all, also those in a state that only a newer release knows.
    """
    states = which.states if among is None else among if which.states is None else which.states & among
    known = KNOWN if states is None else states & KNOWN
    foreign = frozenset[JobState]() if states is None else states - KNOWN
    selection = Selection({}, where_params(which.where), which.where)
    if foreign:
        selection.params["states"] = text_array(sorted(foreign | known))
    shared = _conditions(which, selection.params)
    for place in PLACES:
        here = place.states & known
        if not (here or (foreign and place.keeps_state)) or not _may_hold(place, which):
            continue
        conditions = list(shared)
        if place.keeps_state and foreign:
            conditions.append("p.state = ANY (%(states)s::text[])")
        elif place.keeps_state and states is not None:
            words = ", ".join(f"'{state.value}'" for state in sorted(here))
            conditions.append(f"p.state = {words}" if len(here) == 1 else f"p.state IN ({words})")
        if which.finished_before is not None:
            conditions.append("p.finished_at < %(finished_before)s::timestamptz")
        if which.finished_after is not None:
            conditions.append("p.finished_at > %(finished_after)s::timestamptz")
        if which.fingerprint is not None:
            is_dead = place.keeps_state and here == DEAD and not foreign
            conditions.append(f"{'p' if is_dead else 'e'}.fingerprint = %(fingerprint)s::text")
        selection.conditions[place.table] = conditions
    return selection


def places_walked(which: JobFilter) -> list[str]:
    """What is looked through for a filter: tables, or the dead or cancelled alone, which have an index."""
    states = KNOWN if which.states is None else which.states
    walked = []
    for place in PLACES:
        here = place.states & states
        if (here or states - KNOWN) and _may_hold(place, which):
            [*only] = here & {JobState.DEAD, JobState.CANCELLED} if len(here) == 1 and not states - KNOWN else ()
            walked.append(only[0].value if only else place.table)
    return walked


def _may_hold(place: Place, which: JobFilter) -> bool:
    return not which.has_window or place.states == FINAL


def residue(which: JobFilter, params: dict[str, object]) -> list[str]:
    """The remaining conditions on each job of a queue state, besides queue and time."""
    return [condition for condition in _conditions(which, params) if not condition.startswith("p.")]


def _conditions(which: JobFilter, params: dict[str, object]) -> list[str]:
    conditions = []
    given: list[tuple[str, object, str]] = [
        ("ids", None if which.ids is None else text_array(which.ids), "p.job_id = ANY (%(ids)s::uuid[])"),
        ("kind", which.kind, "j.kind = %(kind)s::text"),
        ("queue", which.queue, "p.queue = %(queue)s::text"),
        ("tag", which.tag, "%(tag)s::text = ANY (j.tags)"),
        ("ref", which.ref, ""),  # found from the records' side: see `jobs_query`
        ("created_before", which.created_before, "j.created_at < %(created_before)s::timestamptz"),
        ("created_after", which.created_after, "j.created_at > %(created_after)s::timestamptz"),
        ("finished_before", which.finished_before, ""),
        ("finished_after", which.finished_after, ""),
        ("fingerprint", which.fingerprint, ""),
        ("mark", which.mark, "j.mark = %(mark)s::text"),
        (
            "error",
            which.error,
            "strpos(lower(concat(e.error_type, chr(10), e.message)), lower(%(error)s::text)) > 0",
        ),
    ]
    for name, value, condition in given:
        if value is not None:
            params[name] = value
            if condition:
                conditions.append(condition)
    if which.marked is not None:
        conditions.append("j.mark IS NOT NULL" if which.marked else "j.mark IS NULL")
    return conditions
