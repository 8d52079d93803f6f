"""From a filter to conditions in SQL: fixed pieces of text, joined; every value is bound, never written in.

A job's state is the place it stands in, so a filter by state becomes a choice of tables. Of the finished jobs the dead
and the cancelled have indexes of their own, which a condition on exactly that state brings into play.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from perdure.domain.jobs.states import FINAL, PARKED, JobState
from perdure.engines.shared.database.instants import to_micros
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.rows import to_document
from perdure.storage.records import JobFilter

EVERY_STATE: Final = frozenset(JobState)
_OF_SPOT: Final = {"ids", "queue", "finished_before", "finished_after"}


class Selection(Struct, frozen=True):
    """The jobs of one place that are meant: what stands after the columns of a SELECT, and the values to bind."""

    place: str
    newest_first: str
    oldest_first: str
    params: dict[str, Any]


class Selector:
    """Makes selections for the tables of one database."""

    def __init__(self, database: Database) -> None:
        self._by_place = database.statements("operate/views/filters.sql", {"lead": "place.job_id"})
        self._by_job = database.statements("operate/views/filters.sql", {"lead": "job.id"})

    def select(
        self, which: JobFilter, among: frozenset[JobState] | None = None, also: dict[str, Any] | None = None
    ) -> list[Selection]:
        """Where to look for the jobs that match and are in one of the states `among`.

        Without a word about states all are meant, also those in a state that only a newer release knows. `also` names
        further conditions with their values.
        """
        named = which.states if among is None else among if which.states is None else which.states & among
        wanted = EVERY_STATE if named is None else named
        foreign = wanted - EVERY_STATE
        params = _conditions(which) | (also or {})
        places: list[tuple[str, tuple[str, ...], dict[str, Any]]] = []
        if JobState.READY in wanted:
            places.append(("ready", (), {}))
        if JobState.RUNNING in wanted:
            places.append(("lease", (), {}))
        if parked := (wanted & PARKED) | foreign:
            states = {} if named is None else {"states": to_document(sorted(parked))}
            places.append(("parked", ("in_states",) if states else (), states))
        if foreign:
            places.append(("finished", ("in_states",), {"states": to_document(sorted(foreign))}))
        if final := wanted & FINAL:
            narrow = [("known_ends",)] if final == FINAL else [(state.value,) for state in sorted(final)]
            places += [("finished", names, {}) for names in ([()] if named is None else narrow)]
        if which.has_window:
            places = [place for place in places if place[0] == "finished"]
        return [self.selection(place, names, params | extra) for place, names, extra in places]

    def residue(self, which: JobFilter, place: str) -> tuple[str, dict[str, Any]]:
        """What remains to be asked of each job of a spot, which has its queue and time, and the values to bind."""
        params = {name: value for name, value in _conditions(which).items() if name not in _OF_SPOT}
        conditions = [self._by_place[name] for name in params]
        if "error" in params:
            conditions.insert(0, self._by_place["failed_or_dead" if place == "finished" else "failed"])
        return " AND ".join(conditions), params

    def selection(
        self, place: str, names: tuple[str, ...], params: dict[str, Any], *, by_job: bool = False
    ) -> Selection:
        """The jobs of one place under the conditions named; looked for from the jobs' side if that is shorter."""
        by_job = by_job or "ids" in params or "ref" in params
        sql = self._by_job if by_job else self._by_place
        conditions = [sql[name] for name in (*names, *(name for name in params if name != "states"))]
        if "error" in params:
            conditions.insert(0, sql["failed_or_dead" if place == "finished" else "failed"])
        source = (
            sql[f"from_job_to_{place}"] if by_job else sql.get("_".join(("from", place, *names)), sql[f"from_{place}"])
        )
        chosen = f"{source} WHERE {' AND '.join(conditions) or 'true'}"
        return Selection(place, f"{chosen} {sql['newest_first']}", f"{chosen} {sql['oldest_first']}", params)


def _conditions(which: JobFilter) -> dict[str, Any]:
    """The values to bind, by the name of their condition."""
    params: dict[str, Any] = {}
    if which.ids is not None:
        params["ids"] = to_document(which.ids)
    for name in ("kind", "queue", "tag", "ref", "mark"):
        if (value := getattr(which, name)) is not None:
            params[name] = value
    for name in ("created_before", "created_after", "finished_before", "finished_after"):
        if (moment := getattr(which, name)) is not None:
            params[name] = to_micros(moment)
    if which.error is not None:
        params["error"] = which.error.casefold()
    if which.marked is not None:
        params["has_mark" if which.marked else "has_no_mark"] = None
    return params
