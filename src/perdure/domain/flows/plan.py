"""Planned jobs: what a batch or a chain stores of its calls until they are made."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from msgspec import Raw, Struct, json, structs

from perdure.domain.flows.child_ids import child_ids
from perdure.domain.flows.flow import NewFamily
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import DEFAULT_CRASH_LIMIT, DEFAULT_PRIORITY, DEFAULT_QUEUE, NewJob, UniqueKey

BATCH: Final = "perdure.batch"
CHAIN: Final = "perdure.chain"
OWN: Final = "perdure."  # prefix of the names of perdure's own kinds


class Planned(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job to be made later. `fills` is the parameter that receives the previous result; None: there is none."""

    kind: str
    args: str
    queue: str = DEFAULT_QUEUE
    priority: int = DEFAULT_PRIORITY
    delay: timedelta | None = None
    run_at: datetime | None = None
    max_attempts: int | None = None
    crash_limit: int = DEFAULT_CRASH_LIMIT
    tags: tuple[str, ...] = ()
    meta: str | None = None
    unique: UniqueKey | None = None
    fills: str | None = None
    settings: str | None = None
    fair_key: str | None = None

    def made(self, job_id: JobId, before: str | None = None) -> NewJob:
        """The job itself; `before` is the JSON of the previous result."""
        args = self.args
        if self.fills is not None:
            given = json.decode(args, type=dict[str, Raw])
            args = json.encode(given | {self.fills: Raw((before or "null").encode())}).decode()
        values = structs.asdict(self) | {"args": args}
        del values["fills"]
        return NewJob(id=job_id, **values)


def link_key(number: int) -> str:
    """The family of a link of a chain, starting at 0."""
    return "stage" if number == 0 else f"stage#{number + 1}"


def link(chain: JobId, number: int, plan: Planned, before: str | None, *, is_last: bool) -> NewFamily:
    """A link of a chain as a family; `before` is the JSON that the previous link returned."""
    key = link_key(number)
    (own,) = child_ids(chain, key, 1)
    following = None if is_last else number + 1
    return NewFamily(key=key, children=(plan.made(own, before),), cursor=str(number), next_link=following)


def planned(job: NewJob, fills: str | None = None) -> Planned:
    """The stored form of a job: all but its id, which its parent assigns."""
    kept = {name: getattr(job, name) for name in Planned.__struct_fields__ if name != "fills"}
    return Planned(**kept, fills=fills)
