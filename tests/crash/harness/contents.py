"""What the database holds when everything is over, read past the port."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.support.databases.behind import query

PLACES = ("ready", "lease", "parked", "finished")


@dataclass(frozen=True, slots=True)
class Standing:
    """One row in one of the four places of a job; `result_token` is the token that an accepted result carries."""

    job: str
    place: str
    state: str
    reason: str
    failures: int
    crashes: int
    result_token: int | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """The record of an attempt that did not succeed."""

    job: str
    token: int
    reason: str


@dataclass(frozen=True, slots=True)
class Contents:
    """All jobs, where they stand, and the records of their attempts; `crash_limits` by job."""

    crash_limits: dict[str, int]
    standings: tuple[Standing, ...]
    records: tuple[Record, ...]


def read_contents(url: str) -> Contents:
    """Read everything."""
    standings = [
        Standing(job, place, place, "", failures, crashes)
        for place in ("ready", "lease")
        for job, failures, crashes in query(url, f"SELECT CAST(job_id AS text), failures, crashes FROM {{{place}}}")
    ]
    standings += [
        Standing(job, "parked", state, reason, failures, crashes)
        for job, state, reason, failures, crashes in query(
            url, "SELECT CAST(job_id AS text), state, reason, failures, crashes FROM {parked}"
        )
    ]
    standings += [
        Standing(job, "finished", state, reason, failures, crashes, _token_in(result))
        for job, state, reason, failures, crashes, result in query(
            url, "SELECT CAST(job_id AS text), state, reason, failures, crashes, result FROM {finished}"
        )
    ]
    return Contents(
        crash_limits=dict(query(url, "SELECT CAST(id AS text), crash_limit FROM {job}")),
        standings=tuple(standings),
        records=tuple(Record(*row) for row in query(url, "SELECT CAST(job_id AS text), token, reason FROM {attempt}")),
    )


def unfinished(url: str) -> int:
    """How many jobs are not final yet."""
    [(jobs,)] = query(url, f"SELECT {' + '.join(f'(SELECT count(*) FROM {{{place}}})' for place in PLACES[:3])}")
    return int(jobs)


def left_over(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """What stands between the storm and its end: unfinished jobs by place, and the workers."""
    places = {place: query(url, f"SELECT * FROM {{{place}}} LIMIT 5") for place in PLACES[:3]}
    return places | {"worker": query(url, "SELECT id, name, pid, beat_at, dead_at FROM {worker} ORDER BY id")}


def _token_in(result: str | None) -> int | None:
    return None if result is None else int(json.loads(result)["token"])
