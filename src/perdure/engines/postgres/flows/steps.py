"""Steps: each is written when it is done, and the next attempt finds it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from perdure.clock import Clock
from perdure.domain.flows.flow import StepKind, StepRecord, StepState, StepWrite
from perdure.domain.jobs.ids import JobId
from perdure.engines.postgres.database.arrays import number_array, storable_array, text_array
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.encoding import field_array, moment_text
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.wire import Asks, Params

_LOCK: Final = "FOR KEY SHARE OF l"
_OVER: Final = frozenset({StepState.DONE, StepState.GIVEN_UP})


class StepPart:
    """Keeps steps and finds them."""

    def __init__(self, naming: Naming, pool: Pool, clock: Clock | None) -> None:
        self._statements = naming.statements("flows/steps.sql")
        self._pool = pool
        self._clock = clock

    async def steps(self, job_ids: Sequence[JobId]) -> dict[JobId, list[StepRecord]]:
        """The steps of these jobs, in the order in which they were begun; a job without any is left out."""
        found: dict[JobId, list[StepRecord]] = {}
        for job_id, key, kind, state, result, note, tries, due_at, begun_at, changed_at in await self._pool.rows(
            self._statements["steps"], {"ids": text_array(job_ids)}
        ):
            step = StepRecord(
                key=key,
                kind=StepKind(kind),
                state=StepState(state),
                result=result,
                note=note,
                tries=tries,
                due_at=due_at,
                begun_at=begun_at,
                changed_at=changed_at,
            )
            found.setdefault(job_id, []).append(step)
        return found

    async def save_steps(self, writes: Sequence[StepWrite]) -> list[bool]:
        """Keep steps, all in one transaction; False for one whose claim is lost."""
        if not writes:
            return []
        latest = _latest(writes)
        [[listed, held]] = await self._pool.rows(self._statements["save_steps"], self._params(latest))
        if held == len(latest):
            return [True] * len(writes)
        mine = {_whose(latest[number - 1]) for number in listed or ()}
        return [_whose(write) in mine for write in writes]

    async def apply(self, writes: Sequence[StepWrite], wire: Asks) -> None:
        """The same in a transaction that ends with the acknowledgement, which is the fence: no lease is locked."""
        if writes:
            await wire.fetch(self._statements["save_steps"].replace(_LOCK, ""), self._params(_latest(writes)))

    def _params(self, latest: Sequence[StepWrite]) -> Params:
        steps = [write.step for write in latest]
        return {
            "ids": text_array([write.claim.job_id for write in latest]),
            "tokens": number_array([write.claim.token for write in latest]),
            "keys": field_array("step", [step.key for step in steps]),
            "kinds": text_array([step.kind for step in steps]),
            "states": text_array([step.state for step in steps]),
            "results": storable_array([step.result for step in steps]),
            "notes": storable_array([step.note for step in steps]),
            "tries": number_array([step.tries for step in steps]),
            "due_ats": text_array([moment_text(step.due_at) for step in steps]),
            "begun_ats": text_array([moment_text(step.begun_at) for step in steps]),
            "count": len(latest),
            "now": self._clock.now() if self._clock else None,
        }


def _whose(write: StepWrite) -> tuple[str, int]:
    return write.claim.job_id, write.claim.token


def _latest(writes: Sequence[StepWrite]) -> list[StepWrite]:
    """Each step once, as the last write leaves it, by job: leases are locked in the order of their ids."""
    kept: dict[tuple[str, int, str], StepWrite] = {}
    for write in writes:
        place = (*_whose(write), write.step.key)
        earlier = kept.get(place)
        if earlier is None or earlier.step.state not in _OVER:
            kept[place] = write
    return sorted(kept.values(), key=lambda write: write.claim.job_id)
