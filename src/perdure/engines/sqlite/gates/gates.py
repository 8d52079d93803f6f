"""Gates: one transaction of the writer loads their state, decides and writes.

So only one process counts at a time. The starts of a key are one row (see `shared.gates.tally`); holds and spends have
rows of their own. A hold counts while the lease of its job and token exists, and those whose lease is gone are deleted
in passing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from perdure.domain.gate import GateChanges, Gatekeeper, GateRequest, GateState, Held, Loan, LoanKey, Spend, Start
from perdure.domain.jobs.ids import JobId, WorkerId
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import Reason
from perdure.engines.shared.database.instants import after, from_micros, span, to_micros
from perdure.engines.shared.gates.needs import PLACES_KEPT, Needs, RateNeed, places_left
from perdure.engines.shared.gates.tally import Tallies, Tally
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.rows import from_document, to_document
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.fleet.upkeep import UpkeepPart
from perdure.engines.sqlite.gates.breakers import BreakerPart
from perdure.engines.sqlite.gates.loans import Loans
from perdure.engines.sqlite.gates.spends import Spends
from perdure.policy.clock_slack import CLOCK_SLACK

_LOOK: Final = ("lost", "gates", "rates_with_line", "holds", "slots_with_line", "lent", "lives")


class _Look(NamedTuple):
    """The state that most batches need, read by the statements of `_LOOK`."""

    lost: list[int]  # places in the batch
    gates: list[Tally]
    placed: list[str]  # rates with waiting jobs
    holds: list[list[Any]]  # key, job, token
    waited_for: list[str]  # slots
    lent: list[list[Any]]  # key, span, how much
    lives: list[int]  # whether the borrower does


class GatePart:
    """Gates of the store."""

    def __init__(self, database: Database, upkeep: UpkeepPart, breakers: BreakerPart) -> None:
        self._database = database
        self._upkeep = upkeep
        self._breakers = breakers
        self._spends = Spends(database)
        self._loans = Loans(database)
        self._sql = database.statements("gates/gates.sql")
        parts = [f"(\n{self._sql[name].rstrip().rstrip(';')}\n)" for name in _LOOK]
        self._look_sql = f"SELECT {', '.join(parts)}"

    async def pass_gates(
        self, requests: Sequence[GateRequest], decide: Gatekeeper, borrower: WorkerId | None = None
    ) -> list[Held | None]:
        """Load the gates, let `decide` answer, and write its changes."""
        if not requests:
            return []
        needs = Needs(requests)

        def work(transaction: Transaction) -> list[Held | None]:
            look = self._look(transaction, needs, borrower)
            tallies = Tallies(needs.lines, look.gates, transaction.now)
            state = self._load(transaction, needs, look, tallies)
            answers, changes = decide(state)
            if changes.loans and borrower is not None:
                self._loans.lend(transaction, borrower, changes.loans)
                self._drop_holds(transaction, look, changes)
            self._write_starts(transaction, changes.starts, tallies)
            if left := places_left(changes.starts, state):
                transaction.change(self._sql["leave_places"], {"rows": to_document(left)})
            self._write_slots(transaction, needs, changes, state.lost, look.waited_for)
            self._write_spends(transaction, changes.spends)
            self._breakers.keep(transaction, changes.breakers)
            return answers

        return await self._database.write(work)

    async def release_gates(self, keys: Collection[str]) -> int:
        """Wake jobs that wait for a slot, in turn, as far as there is room; only a read if no job waits."""
        asked = {"keys": to_document(sorted(set(keys)))}
        rows = await self._database.read(lambda transaction: transaction.run(self._sql["keys_with_line"], asked))
        if not rows:
            return 0
        waited_for = [key for (key,) in rows]
        return await self._database.write(lambda transaction: self._release(transaction, waited_for))

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
        keys = await self._loans.recall()
        return await self.release_gates(keys) if keys else 0

    async def spend(self, claim: Claim, name: str, amount: float) -> bool:
        """Record what an attempt has spent; the first call replaces its estimate."""

        def work(transaction: Transaction) -> bool:
            if not transaction.run(self._sql["is_held"], {"job_id": claim.job_id, "token": claim.token}):
                return False
            spent = {"name": name, "job_id": claim.job_id, "amount": amount, "now": transaction.now}
            if not transaction.change(self._sql["settle_estimate"], spent):
                transaction.change(self._sql["add_spend"], spent)
            return True

        return await self._database.write(work)

    async def budgets(self, most: int) -> list[str]:
        """The first names, in order, with recent spending."""
        return await self._spends.budgets(most)

    async def spent(self, name: str, since: datetime) -> float:
        """What was spent after that instant, estimates included."""
        return await self._spends.spent(name, since)

    def _look(self, transaction: Transaction, needs: Needs, borrower: WorkerId | None) -> _Look:
        """All in one call, because every call releases the interpreter's lock and must take it again."""
        slots = to_document(needs.slots)
        if needs.slots:
            transaction.change(self._sql["drop_stale_holds"], {"slots": slots})
        names = to_document(list(needs.lines))
        asked: dict[str, Any] = {"claims": to_document(needs.claims), "names": names, "slots": slots}
        asked |= {"now": transaction.now, "borrower": borrower}
        (documents,) = transaction.run(self._look_sql, asked)
        return _Look(*map(from_document, documents))

    def _load(self, transaction: Transaction, needs: Needs, look: _Look, tallies: Tallies) -> GateState:
        asking = set(needs.claims)
        holders = Counter([key for key, job_id, token in look.holds if (job_id, token) not in asking])
        holders.update({key: number for key, micros, number in look.lent if not micros})
        lent = {(key, timedelta(microseconds=micros)): number for key, micros, number in look.lent if micros}
        return GateState(
            now=from_micros(transaction.now),
            starts=self._starts(transaction, needs, look, tallies, lent),
            holders=holders,
            spending=self._spends.load(transaction, needs.funds) if needs.funds else {},
            breakers=self._breakers.load(transaction, needs.breakers),
            lost=frozenset(needs.claims[index] for index in look.lost),
            awaited=look.waited_for,
            lent=lent,
            watched=tallies.watched,
            lends=bool(look.lives[0]),
        )

    def _starts(
        self, transaction: Transaction, needs: Needs, look: _Look, tallies: Tallies, lent: Mapping[LoanKey, int]
    ) -> dict[str, list[Start]]:
        """The starts that count, and as much of each line as the decision needs."""
        found = tallies.starts(look.placed, lent)
        if look.placed:
            for key, at, job_id in self._places(transaction, needs, {key: needs.lines[key] for key in look.placed}):
                found[key].append(Start(key, from_micros(at), job_id, False))
        return found

    def _places(
        self, transaction: Transaction, needs: Needs, lines: dict[str, RateNeed]
    ) -> set[tuple[str, int, JobId]]:
        """The end of each line; for longer lines also the near places, and those of the requesting jobs."""
        places = set[tuple[str, int, JobId]]()
        ahead = transaction.now + span(CLOCK_SLACK)
        for most, keys in _by_length(lines).items():
            asked = {"keys": to_document(keys), "most": most - 1}
            rows = self._rows(transaction, "last_places", asked)
            if wrong := {key for key, _, _, given_at in rows if given_at is not None and given_at > ahead}:
                dropped = {"keys": to_document(sorted(wrong)), "ahead": ahead}
                transaction.change(self._sql["drop_places_ahead"], dropped)
                rows = self._rows(transaction, "last_places", asked)
            places.update((key, at, job_id) for key, at, job_id, _ in rows)
        lengths = Counter(key for key, _, _ in places)
        if long := {key: line for key, line in lines.items() if lengths[key] >= line.most}:
            now = transaction.now
            near = [(key, now - span(line.span), after(now, line.span)) for key, line in long.items()]
            places.update(map(tuple, self._rows(transaction, "near_places", {"rows": to_document(near)})))
            own = to_document([asker for asker in needs.askers if asker[0] in long])
            places.update(map(tuple, self._rows(transaction, "own_places", {"askers": own})))
        return places

    def _write_starts(self, transaction: Transaction, starts: Sequence[Start], tallies: Tallies) -> None:
        if stale := tallies.stale:
            transaction.change(self._sql["keep_gates"], {"rows": to_document(stale)})
        begun = Counter(dict.fromkeys(tallies.ahead, 0))
        begun.update([start.key for start in starts if start.begun])
        if begun:
            transaction.change(self._sql["begin"], {"rows": to_document(tallies.after(begun))})
        if places := [start for start in starts if not start.begun]:
            now = transaction.now
            transaction.change(
                self._sql["reserve"], {"rows": to_document([_place(one, tallies, now) for one in places])}
            )

    def _write_slots(
        self,
        transaction: Transaction,
        needs: Needs,
        changes: GateChanges,
        lost: Collection[tuple[JobId, int]],
        waited_for: Collection[str],
    ) -> None:
        if changes.holds:
            transaction.change(self._sql["hold"], {"rows": to_document(sorted(changes.holds))})
        if waited_for:
            lines = set(waited_for)
            if left := [asked for asked in needs.not_waiting(changes, lost) if asked[0] in lines]:
                transaction.change(self._sql["leave_line"], {"rows": to_document(left)})
        if changes.waiting:
            rows = [(*asked, needs.sizes[asked]) for asked in changes.waiting]
            transaction.change(self._sql["stand_in_line"], {"rows": to_document(rows)})

    def _drop_holds(self, transaction: Transaction, look: _Look, changes: GateChanges) -> None:
        """Drop holds of an earlier try with a lost answer, if this one borrows them."""
        if held := [(key, job_id) for key, job_id, token in look.holds if (job_id, token) in changes.borrowers]:
            transaction.change(self._sql["drop_holds"], {"rows": to_document(held)})

    def _write_spends(self, transaction: Transaction, spends: Iterable[Spend]) -> None:
        if rows := [(spend.name, to_micros(spend.at), spend.amount, spend.job_id) for spend in spends]:
            transaction.change(self._sql["estimate"], {"rows": to_document(rows)})

    def _release(self, transaction: Transaction, keys: Sequence[str]) -> int:
        live = dict[str, int](self._rows(transaction, "holders", {"keys": to_document(keys)}))
        woken = 0
        for key in keys:
            first = transaction.run(self._sql["first_in_line"], {"key": key})
            room = first[0][0] - live.get(key, 0) if first else 0
            if room > 0:
                rows = self._rows(transaction, "next_in_line", {"key": key, "room": room})
                woken += len(self._upkeep.wake(transaction, rows, Reason.RESUMED))
        return woken

    def _rows(self, transaction: Transaction, statement: str, params: dict[str, Any]) -> list[Any]:
        ((document,),) = transaction.run(self._sql[statement], params)
        return from_document(document)


def _place(start: Start, tallies: Tallies, now: int) -> tuple[str, int, JobId, int, int]:
    at = to_micros(start.at)
    return start.key, at, start.job_id, at + tallies.kept_for(start.key) + span(PLACES_KEPT), now


def _by_length(lines: dict[str, RateNeed]) -> dict[int, list[str]]:
    """Keys by how much of the end of their line is needed, rounded up so that a few statements are enough for all."""
    found: dict[int, list[str]] = {}
    for key, line in lines.items():
        found.setdefault(1 << (line.most - 1).bit_length(), []).append(key)
    return found
