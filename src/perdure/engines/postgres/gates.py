"""Gates: all that ask for the same one wait for each other, and count what the others have written.

A transaction first locks the gates of its batch, in one order everywhere, and only then reads: each statement sees what
was committed before it began, so what is read under the locks is all there is. A hold counts while the lease of its job
and token exists; a lease that is just being given back still counts, which errs on the safe side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Final

from perdure.clock import Clock
from perdure.domain.gate import GateChanges, Gatekeeper, GateRequest, GateState, Held, Spend, Start
from perdure.domain.ids import JobId
from perdure.domain.job import Claim
from perdure.domain.states import Reason
from perdure.engines.gate_needs import GATES_KEPT, PLACES_KEPT, Line, Needs, places_left
from perdure.engines.postgres.arrays import number_array, text_array
from perdure.engines.postgres.breakers import PostgresBreakers, lock_of
from perdure.engines.postgres.connections import Pool
from perdure.engines.postgres.gate_locks import GateLocks, Locked
from perdure.engines.postgres.naming import Naming
from perdure.engines.postgres.rows import Row
from perdure.engines.postgres.waking import PostgresWaking
from perdure.engines.postgres.wire import Params, Wire

_MICROSECOND: Final = timedelta(microseconds=1)
_key: Final = attrgetter("key")


class _Look:
    """What most batches need to know, as it comes from the database."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.lost = set[tuple[JobId, int]]()
        self.holders = dict[str, int]()
        self.waited_for = set[str]()  # slots
        self.placed = list[str]()  # rates before which somebody stands
        self.starts = list[Start]()


class PostgresGates:
    """Lets jobs pass, and wakes those for which there is room again."""

    def __init__(
        self,
        naming: Naming,
        pool: Pool,
        clock: Clock | None,
        locks: GateLocks,
        breakers: PostgresBreakers,
        waking: PostgresWaking,
    ) -> None:
        self._statements = naming.statements("gates.sql")
        self._pool = pool
        self._clock = clock
        self._locks = locks
        self._breakers = breakers
        self._waking = waking

    async def pass_gates(self, requests: Sequence[GateRequest], decide: Gatekeeper) -> list[Held | None]:
        """Lock the gates, let `decide` answer, and write what it says."""
        if not requests:
            return []
        needs = Needs(requests)

        async def work(wire: Wire, locked: Locked) -> list[Held | None]:
            look = await self._look(wire, needs)
            spans = await self._renew(wire, needs, locked, look.now)
            state = GateState(
                now=look.now,
                starts=await self._starts(wire, needs, look),
                holders=look.holders,
                spends=await self._spends(wire, needs, look.now),
                breakers=await self._breakers.load(wire, needs.breakers),
                lost=frozenset(look.lost),
            )
            answers, changes = decide(state)
            await self._write_starts(wire, needs, changes.starts, spans)
            if left := places_left(changes.starts, state):
                await wire.fetch(self._statements["leave_places"], _pairs(left))
            await self._write_slots(wire, needs, changes, look)
            await self._write_spends(wire, changes.spends)
            await self._breakers.keep(wire, changes.breakers)
            return answers

        return await self._locks.locked(_names(needs), work)

    async def release_gates(self, keys: Collection[str]) -> int:
        """Wake jobs that wait for a slot, in turn, as far as there is room."""
        if not keys:
            return 0
        asked = {"keys": text_array(sorted(set(keys))), "reason": Reason.CONCURRENCY_REACHED.value}
        rows = await self._pool.rows(self._statements["next_in_line"], asked)
        return await self._waking.wake([JobId(job_id) for (job_id,) in rows], Reason.CONCURRENCY_REACHED)

    async def spend(self, claim: Claim, name: str, amount: float) -> bool:
        """Record what an attempt has spent, the first time in place of its estimate."""
        params = {"id": claim.job_id, "token": claim.token, "name": name, "amount": amount, "now": self._now()}
        return bool(await self._pool.rows(self._statements["spend"], params))

    async def spent(self, name: str, since: datetime) -> float:
        """What was spent after that instant, estimates included."""
        [[total]] = await self._pool.rows(self._statements["spent"], {"name": name, "since": since})
        return float(total)

    async def _look(self, wire: Wire, needs: Needs) -> _Look:
        spans = {line.span: line.span // _MICROSECOND for line in needs.lines.values()}
        params = {
            "now": self._now(),
            "ids": text_array([job_id for job_id, _ in needs.claims]),
            "tokens": number_array([token for _, token in needs.claims]),
            "slots": text_array(needs.slots),
            "rates": text_array(list(needs.lines)),
            "spans": number_array([spans[line.span] for line in needs.lines.values()]),
            "leasts": number_array([line.least for line in needs.lines.values()]),
        }
        (_, _, _, now, _), *rows = await wire.fetch(self._statements["look"], params)
        look = _Look(now)
        for sort, key, number, at, job_id in rows:
            match sort:
                case "lost":
                    look.lost.add(needs.claims[number - 1])
                case "held":
                    look.holders[key] = number
                case "waited for":
                    look.waited_for.add(key)
                case "placed":
                    look.placed.append(key)
                case _:
                    look.starts.append(Start(key, at, job_id, True))
        return look

    async def _renew(self, wire: Wire, needs: Needs, locked: Locked, now: datetime) -> dict[str, timedelta]:
        """For how long the starts of each rate are kept: as long as anybody who met it lately wants to look back."""
        spans: dict[str, timedelta] = {}
        stale: dict[str, timedelta] = {}
        wanted = {f"rate:{key}": line.span for key, line in needs.lines.items()}
        for name, (kept, until) in locked.items():
            span = max(kept, wanted.get(name, kept))
            spans[name] = span
            if span > kept or until < now + GATES_KEPT / 2:
                stale[name] = span
        if stale:
            await self._locks.renew(wire, stale, now + GATES_KEPT)
        return {key: spans[f"rate:{key}"] for key in needs.lines}

    async def _starts(self, wire: Wire, needs: Needs, look: _Look) -> dict[str, list[Start]]:
        """The starts that count, and of each line as much as must be seen."""
        found: dict[str, list[Start]] = {key: [] for key in needs.lines}
        if look.placed:
            lines = {key: needs.lines[key] for key in look.placed}
            for key, at, job_id in await self._places(wire, lines, needs.askers, look.now):
                found[key].append(Start(key, at, job_id, False))
        for start in look.starts:
            found[start.key].append(start)
        return found

    async def _places(
        self, wire: Wire, lines: Mapping[str, Line], askers: Sequence[tuple[str, JobId]], now: datetime
    ) -> set[Row]:
        """The end of each line; of one that is longer also what is near, and where the askers stand."""
        mosts = number_array([line.most for line in lines.values()])
        places = set(
            await wire.fetch(self._statements["last_places"], {"keys": text_array(list(lines)), "mosts": mosts})
        )
        lengths = Counter(key for key, _, _ in places)
        if long := {key: line for key, line in lines.items() if lengths[key] >= line.most}:
            asking = [asker for asker in askers if asker[0] in long]
            params: Params = {
                "keys": text_array(list(long)),
                "sinces": _moments([now - line.span for line in long.values()]),
                "untils": _moments([now + line.span for line in long.values()]),
                "asked": text_array([key for key, _ in asking]),
                "askers": text_array([job_id for _, job_id in asking]),
            }
            places.update(await wire.fetch(self._statements["other_places"], params))
        return places

    async def _spends(self, wire: Wire, needs: Needs, now: datetime) -> dict[str, list[Spend]]:
        found: dict[str, list[Spend]] = {name: [] for name in needs.windows}
        if found:
            sinces = _moments([now - window for window in needs.windows.values()])
            params = {"names": text_array(list(needs.windows)), "sinces": sinces}
            for name, at, amount, job_id, is_estimate in await wire.fetch(self._statements["spends"], params):
                found[name].append(Spend(name, at, amount, job_id, is_estimate))
        return found

    async def _write_starts(
        self, wire: Wire, needs: Needs, starts: Sequence[Start], spans: Mapping[str, timedelta]
    ) -> None:
        tokens = needs.tokens()
        for statement, begun, kept in (("begin", True, timedelta(0)), ("reserve", False, PLACES_KEPT)):
            if rows := sorted([start for start in starts if start.begun is begun], key=_key):  # neighbours together
                params: Params = {
                    "keys": text_array([start.key for start in rows]),
                    "ats": _moments([start.at for start in rows]),
                    "ids": text_array([start.job_id for start in rows]),
                    "tokens": number_array([tokens[start.job_id] for start in rows]),
                    "untils": _moments([start.at + spans[start.key] + kept for start in rows]),
                }
                await wire.fetch(self._statements[statement], params)

    async def _write_slots(self, wire: Wire, needs: Needs, changes: GateChanges, look: _Look) -> None:
        if changes.holds:
            held = {
                "keys": text_array([key for key, _, _ in changes.holds]),
                "ids": text_array([job_id for _, job_id, _ in changes.holds]),
                "tokens": number_array([token for _, _, token in changes.holds]),
            }
            await wire.fetch(self._statements["hold"], held)
        if look.waited_for:
            not_waiting = needs.not_waiting(changes, look.lost)
            if left := [asked for asked in not_waiting if asked[0] in look.waited_for]:
                await wire.fetch(self._statements["leave_line"], _pairs(left))
        if changes.waiting:
            sizes = number_array([needs.sizes[asked] for asked in changes.waiting])
            await wire.fetch(self._statements["stand_in_line"], {**_pairs(changes.waiting), "sizes": sizes})

    async def _write_spends(self, wire: Wire, changed: Sequence[Spend]) -> None:
        if spends := {(spend.name, spend.job_id): spend for spend in changed}.values():
            params = {
                "names": text_array([spend.name for spend in spends]),
                "ats": _moments([spend.at for spend in spends]),
                "amounts": number_array([spend.amount for spend in spends]),
                "ids": text_array([spend.job_id for spend in spends]),
            }
            await wire.fetch(self._statements["estimate"], params)

    def _now(self) -> datetime | None:
        return self._clock.now() if self._clock else None


def _names(needs: Needs) -> set[str]:
    """What is locked for a batch."""
    return {
        *(f"rate:{key}" for key in needs.lines),
        *(f"slot:{key}" for key in needs.slots),
        *(f"budget:{name}" for name in needs.windows),
        *(lock_of(name) for name in needs.breakers),
    }


def _pairs(pairs: Sequence[tuple[str, JobId]]) -> dict[str, str]:
    return {"keys": text_array([key for key, _ in pairs]), "ids": text_array([job_id for _, job_id in pairs])}


def _moments(moments: Sequence[datetime]) -> str:
    texts = {moment: moment.isoformat() for moment in set(moments)}  # most of a batch are the same
    return text_array([texts[moment] for moment in moments])
