"""Gates: requests for the same gate wait for each other, and see each other's writes.

A transaction first locks the gates of its batch, in one order everywhere, and only then reads: each statement sees what
was committed before it began, so a read under the locks is complete. A hold counts while the lease of its job and token
exists; a lease that is just being released still counts, which errs on the safe side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from perdure.clock import Clock
from perdure.domain.gate import GateChanges, Gatekeeper, GateRequest, GateState, Held, Loan, LoanKey, Spend, Start
from perdure.domain.jobs.ids import JobId, WorkerId
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import Reason
from perdure.engines.postgres.database.arrays import number_array, text_array
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.encoding import seconds_text
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.rows import Row
from perdure.engines.postgres.database.wire import Params, Wire
from perdure.engines.postgres.flows.waking import Waker
from perdure.engines.postgres.gates.breakers import BreakerPart, locks_of
from perdure.engines.postgres.gates.loans import Loans
from perdure.engines.postgres.gates.locks import GateLocks
from perdure.engines.postgres.gates.spends import Spends
from perdure.engines.shared.gates.needs import NO_JOB, PLACES_KEPT, Needs, RateNeed, places_left
from perdure.policy.clock_slack import CLOCK_SLACK

_NO_STARTS: Final = timedelta(0)


class _Look:
    """The state that most batches need."""

    def __init__(self, needs: Needs, rows: list[Row]) -> None:
        (_, _, _, self.now, _), *rest = rows
        self.lost = set[tuple[JobId, int]]()
        self.holders = dict[str, int]()
        self.waited_for = set[str]()  # slots
        self.placed = list[str]()  # rates with waiting jobs
        self.lent = dict[LoanKey, int]()  # of rates
        self.lends = False
        self.ahead = list[str]()  # rates whose newest start lies ahead
        self.starts: dict[str, list[Start]] = {key: [] for key in needs.lines}
        for sort, key, number, at, span in rest:
            match sort:
                case "lost":
                    self.lost.add(needs.claims[number - 1])
                case "held":
                    self.holders[key] = self.holders.get(key, 0) + number
                case "waited for":
                    self.waited_for.add(key)
                case "placed":
                    self.placed.append(key)
                case "slots lent":
                    self.holders[key] = self.holders.get(key, 0) + int(number)
                case "starts lent":
                    self.lent[key, span] = int(number)
                case "lives":
                    self.lends = True
                case "ahead":
                    self.ahead.append(key)
                case _:
                    self.starts[key] += [Start(key, min(at, self.now), NO_JOB, True)] * number


class GatePart:
    """Lets jobs pass, and wakes waiting ones when there is room."""

    def __init__(
        self,
        naming: Naming,
        pool: Pool,
        clock: Clock | None,
        locks: GateLocks,
        breakers: BreakerPart,
        waking: Waker,
    ) -> None:
        self._statements = naming.statements("gates/gates.sql")
        self._spends = Spends(naming, pool)
        self._pool = pool
        self._clock = clock
        self._locks = locks
        self._breakers = breakers
        self._waking = waking
        self._loans = Loans(naming, pool, clock)

    async def pass_gates(
        self, requests: Sequence[GateRequest], decide: Gatekeeper, borrower: WorkerId | None = None
    ) -> list[Held | None]:
        """Lock the gates, let `decide` answer, and write its changes."""
        if not requests:
            return []
        needs = Needs(requests)

        async def work(wire: Wire, kept: Mapping[str, timedelta], found: list[Row]) -> list[Held | None]:
            look = _Look(needs, found)
            spans = {key: kept.get(f"rate:{key}", line.span) for key, line in needs.lines.items()}
            state = GateState(
                now=look.now,
                starts=await self._starts(wire, needs, look),
                holders=look.holders,
                spending=await self._spends.load(wire, needs.funds, look.now) if needs.funds else {},
                breakers=await self._breakers.load(wire, needs.breakers),
                lost=frozenset(look.lost),
                awaited=look.waited_for,
                lent=look.lent,
                lends=look.lends,
                watched=frozenset([key for key, line in needs.lines.items() if spans[key] > line.shortest]),
            )
            answers, changes = decide(state)
            if changes.loans and borrower is not None:
                self._loans.lend(wire, borrower, changes.loans)
            if look.ahead:
                wire.defer(self._statements["redate"], {"keys": text_array(look.ahead), "now": look.now})
            self._write_starts(wire, changes.starts, spans, look.now)
            if left := places_left(changes.starts, state):
                wire.defer(self._statements["leave_places"], _pairs(left))
            self._write_slots(wire, needs, changes, look)
            self._write_spends(wire, changes.spends)
            self._breakers.keep(wire, changes.breakers)
            return answers

        return await self._locks.locked(_gates(needs), (self._statements["look"], self._asked(needs, borrower)), work)

    async def release_gates(self, keys: Collection[str]) -> int:
        """Wake jobs that wait for a slot, in turn, as far as there is room."""
        if not keys:
            return 0
        asked = {"keys": text_array(sorted(set(keys))), "reason": Reason.CONCURRENCY_REACHED.value}
        rows = await self._pool.rows(self._statements["next_in_line"], asked)
        return await self._waking.wake([JobId(job_id) for (job_id,) in rows], Reason.CONCURRENCY_REACHED)

    async def loans(self, borrower: WorkerId) -> list[Loan]:
        """The loans of a worker."""
        return await self._loans.of(borrower)

    async def return_loans(
        self, borrower: WorkerId, back: Collection[Loan], left: Collection[Loan] = ()
    ) -> set[LoanKey]:
        """Deduct these from a worker's loans; returns for which of its loans jobs wait."""
        return await self._loans.take_off(borrower, back, left)

    async def recall_loans(self) -> int:
        """Take back the loans of dead workers, and wake the jobs waiting for them."""
        return await self.release_gates(await self._loans.recall())

    async def spend(self, claim: Claim, name: str, amount: float) -> bool:
        """Record what an attempt has spent; the first call replaces its estimate."""
        params = {"id": claim.job_id, "token": claim.token, "name": name, "amount": amount, "now": self._now()}
        return bool(await self._pool.rows(self._statements["spend"], params))

    async def budgets(self, most: int) -> list[str]:
        """The first names, in order, with recent spending."""
        return await self._spends.budgets(most)

    async def spent(self, name: str, since: datetime) -> float:
        """What was spent after that instant, estimates included."""
        return await self._spends.spent(name, since)

    def _asked(self, needs: Needs, borrower: WorkerId | None) -> Params:
        spans = {line.span: seconds_text(line.span) for line in needs.lines.values()}
        return {
            "now": self._now(),
            "borrower": borrower,
            "ids": text_array([job_id for job_id, _ in needs.claims]),
            "tokens": number_array([token for _, token in needs.claims]),
            "slots": text_array(needs.slots),
            "rates": text_array(list(needs.lines)),
            "spans": text_array([spans[line.span] for line in needs.lines.values()]),
            "leasts": number_array([line.least for line in needs.lines.values()]),
        }

    async def _starts(self, wire: Wire, needs: Needs, look: _Look) -> dict[str, list[Start]]:
        """The starts that count, and as much of each line as the decision needs."""
        if look.placed:
            lines = {key: needs.lines[key] for key in look.placed}
            for key, at, job_id in await self._places(wire, lines, needs.askers, look.now):
                look.starts[key].append(Start(key, at, job_id, False))
        return look.starts

    async def _places(
        self, wire: Wire, lines: Mapping[str, RateNeed], askers: Sequence[tuple[str, JobId]], now: datetime
    ) -> set[Row]:
        """The end of each line; for longer lines also the near places, and those of the requesting jobs."""
        mosts = number_array([line.most for line in lines.values()])
        asked: Params = {"keys": text_array(list(lines)), "mosts": mosts}
        rows = await wire.fetch(self._statements["last_places"], asked)
        ahead = now + CLOCK_SLACK
        if wrong := {key for key, _, _, given_at in rows if given_at is not None and given_at > ahead}:
            dropped: Params = {"keys": text_array(sorted(wrong)), "ahead": ahead}
            await wire.fetch(self._statements["drop_places_ahead"], dropped)
            rows = await wire.fetch(self._statements["last_places"], asked)
        places: set[Row] = {(key, at, job_id) for key, at, job_id, _ in rows}
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

    def _write_starts(self, wire: Wire, starts: Sequence[Start], spans: Mapping[str, timedelta], now: datetime) -> None:
        if begun := Counter([start.key for start in starts if start.begun]):
            texts = {span: seconds_text(span) for span in set(spans.values())}  # most of a batch are the same
            params: Params = {
                "keys": text_array(list(begun)),
                "numbers": number_array(begun.values()),
                "spans": text_array([texts[spans[key]] for key in begun]),
                "now": now,
            }
            wire.defer(self._statements["begin"], params)
        if places := [start for start in starts if not start.begun]:
            reserved: Params = {
                "keys": text_array([start.key for start in places]),
                "ats": _moments([start.at for start in places]),
                "ids": text_array([start.job_id for start in places]),
                "untils": _moments([start.at + spans[start.key] + PLACES_KEPT for start in places]),
                "now": now,
            }
            wire.defer(self._statements["reserve"], reserved)

    def _write_slots(self, wire: Wire, needs: Needs, changes: GateChanges, look: _Look) -> None:
        if changes.holds:
            held = {
                "keys": text_array([key for key, _, _ in changes.holds]),
                "ids": text_array([job_id for _, job_id, _ in changes.holds]),
                "tokens": number_array([token for _, _, token in changes.holds]),
            }
            wire.defer(self._statements["hold"], held)
        if look.waited_for:
            not_waiting = needs.not_waiting(changes, look.lost)
            if left := [asked for asked in not_waiting if asked[0] in look.waited_for]:
                wire.defer(self._statements["leave_line"], _pairs(left))
        if changes.waiting:
            sizes = number_array([needs.sizes[asked] for asked in changes.waiting])
            wire.defer(self._statements["stand_in_line"], {**_pairs(changes.waiting), "sizes": sizes})

    def _write_spends(self, wire: Wire, changed: Sequence[Spend]) -> None:
        if spends := {(spend.name, spend.job_id): spend for spend in changed}.values():
            params = {
                "names": text_array([spend.name for spend in spends]),
                "ats": _moments([spend.at for spend in spends]),
                "amounts": number_array([spend.amount for spend in spends]),
                "ids": text_array([spend.job_id for spend in spends]),
            }
            wire.defer(self._statements["estimate"], params)

    def _now(self) -> datetime | None:
        return self._clock.now() if self._clock else None


def _gates(needs: Needs) -> dict[str, timedelta]:
    """The gates to lock for a batch, and how long the starts of each are needed."""
    spans = {f"rate:{key}": line.span for key, line in needs.lines.items()}
    spans |= {f"slot:{key}": _NO_STARTS for key in needs.slots}
    spans |= {f"budget:{name}": _NO_STARTS for name in needs.funds}
    return spans | locks_of(needs.breakers)


def _pairs(pairs: Sequence[tuple[str, JobId]]) -> dict[str, str]:
    return {"keys": text_array([key for key, _ in pairs]), "ids": text_array([job_id for _, job_id in pairs])}


def _moments(moments: Sequence[datetime]) -> str:
    texts = {moment: moment.isoformat() for moment in set(moments)}  # most of a batch are the same
    return text_array([texts[moment] for moment in moments])
