"""From a filter to conditions in SQL: fixed pieces of text, joined; every value is bound, never written in.

A job's state is the place it stands in, so a filter by state becomes a choice of tables. Of the finished jobs the dead
and the cancelled have indexes of their own, which a condition on exactly that state brings into play.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct

from perdure.domain.jobs.states import FINAL, PARKED, JobState
from perdure.engines.shared.database.instants import to_micros
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.rows import to_document
from perdure.storage.records import JobFilter

EVERY_STATE: Final = frozenset(JobState)
_DOCUMENTS: Final = ("args", "meta", "result")
_OF_RESULTS: Final = {"where_result": "where_no_result", "needle_result": "no_needle_result"}
_OF_SPOT: Final = {"ids", "queue", "finished_before", "finished_after"}


class Selection(Struct, frozen=True):
    """The jobs of one place that are meant: what stands after the columns of a SELECT, and the values to bind."""

    place: str
    newest_first: str
    oldest_first: str
    params: dict[str, Any]
    walk: str = ""  # finds the id behind so many others, among those that are looked at; empty: all are


class Residue(Struct, frozen=True):
    """Conditions on the jobs of a queue state, empty if there are none; `with_job`: they need the job itself."""

    condition: str
    params: dict[str, Any]
    with_job: bool


class Selector:
    """Makes selections for the tables of one database."""

    def __init__(self, database: Database) -> None:
        self._by_place = database.statements("operate/views/filters.sql", {"lead": "place.job_id"})
        self._by_job = database.statements("operate/views/filters.sql", {"lead": "job.id"})

    def select(
        self, which: JobFilter, among: frozenset[JobState] | None = None, also: dict[str, Any] | None = None
    ) -> list[Selection]:
        """Where to look for the jobs that match and are in one of the states `among`.

        A filter without states means all, also those in a state that only a newer release knows. `also` names
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

    def residue(self, which: JobFilter, place: str, state: JobState) -> Residue:
        """The conditions on jobs of a queue state besides queue and time."""
        params = {name: value for name, value in _conditions(which).items() if name not in _OF_SPOT}
        names = set(params)
        pieces = []
        if state is JobState.DEAD and "kind" in params:
            names.remove("kind")
            pieces.append(self._by_place["dead_of_kind"])
        pieces += _pieces(self._by_place, place, [name for name in params if name in names])
        return Residue(" AND ".join(pieces), params, with_job=bool(names))

    def selection(
        self, place: str, names: tuple[str, ...], params: dict[str, Any], *, by_job: bool = False
    ) -> Selection:
        """The jobs of one place under the conditions named; looked for from the jobs' side if that is shorter."""
        by_job = by_job or "ids" in params or "ref" in params
        sql = self._by_job if by_job else self._by_place
        is_dead_alike = not by_job and names == ("dead",) and "fingerprint" in params
        if by_job:
            source = sql[f"from_job_to_{place}"]
        elif is_dead_alike:
            source = sql["from_finished_dead_alike"]
        else:
            source = sql.get("_".join(("from", place, *names)), sql[f"from_{place}"])
        asked = [name for name in params if name != "states" and not (is_dead_alike and name == "fingerprint")]
        conditions = [*(sql[name] for name in names), *_pieces(sql, place, asked)]
        if is_dead_alike:
            conditions.append(sql["dead_alike"])
        elif names == ("dead",) and "kind" in params:
            conditions.append(sql["dead_of_kind"])
        chosen = f"{source} WHERE {' AND '.join(conditions) or 'true'}"
        walk = sql.get("_".join(("walk", place, *names)), sql[f"walk_{place}"])
        if place == "ready" and not by_job:  # a short line is looked through whole
            walk = ""
        newest, oldest = (f"{chosen} {sql[order]}" for order in ("newest_first", "oldest_first"))
        return Selection(place, newest, oldest, params, walk)

    @property
    def made_at(self) -> str:
        """The statement that tells when a job was made."""
        return self._by_job["made_at"]


def _pieces(sql: dict[str, str], place: str, names: Iterable[str]) -> list[str]:
    """The conditions of these names on jobs of one place."""
    is_finished = place == "finished"
    pieces: list[str] = []
    for name in names:
        if name in {"error", "fingerprint"}:
            pieces.insert(0, sql["failed_or_dead" if is_finished else "failed"])
        if name in _OF_RESULTS and not is_finished:
            pieces.append(sql[_OF_RESULTS[name]])
        elif name == "where_error" and is_finished:
            pieces.append(sql["where_last_error"])
        else:
            pieces.append(sql[name])
    return pieces


def _conditions(which: JobFilter) -> dict[str, Any]:
    """The values to bind, by the name of their condition."""
    params: dict[str, Any] = {}
    if which.ids is not None:
        params["ids"] = to_document(which.ids)
    for name in ("kind", "queue", "tag", "ref", "mark", "fingerprint"):
        if (value := getattr(which, name)) is not None:
            params[name] = value
    for name in ("created_before", "created_after", "finished_before", "finished_after"):
        if (moment := getattr(which, name)) is not None:
            params[name] = to_micros(moment)
    if which.error is not None:
        params["error"] = which.error.casefold()
    if which.marked is not None:
        params["has_mark" if which.marked else "has_no_mark"] = None
    for field in dict.fromkeys(condition.field for condition in which.where):
        conditions = [condition for condition in which.where if condition.field == field]
        needles = [each.needle for each in conditions if each.needle is not None]
        if needles and field in _DOCUMENTS:  # asked first: to look for a text costs less than to read a document
            params[f"needle_{field}"] = max(needles, key=len)
        params[f"where_{field}"] = to_document([[each.field, each.path, each.op, each.value] for each in conditions])
    return params
