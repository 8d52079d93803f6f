"""How the outcomes of claims are written, a batch at a time.

Every statement joins its rows with `lease` on id and token: a claim that was lost matches nothing and writes nothing.
The number of rows written tells whether that has happened; only then a query finds which ones.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import FAULTS, FINAL, JobState, Reason
from perdure.domain.jobs.transition import Transition
from perdure.domain.operate.audit import Audited, noted_as
from perdure.engines.shared.database.instants import after
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.rows import clean, from_document, to_document, warnings_text
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.flows.events import EventPart
from perdure.engines.sqlite.flows.families import FamilyPart
from perdure.engines.sqlite.flows.settling import Settling
from perdure.engines.sqlite.intake.fairness import FairTurns
from perdure.engines.sqlite.intake.keys import Keys
from perdure.engines.sqlite.operate.commands.audit import Audit
from perdure.engines.sqlite.operate.views.kinds import KindPart
from perdure.policy.decide import cancel_instead, wait_for_key, wake_if_there
from perdure.policy.fingerprints import fingerprint
from perdure.storage.records import Acknowledged

_Rows = list[tuple[Any, ...]]


class AcknowledgementPart:
    """Acknowledgement of the store."""

    def __init__(
        self, database: Database, settling: Settling, events: EventPart, families: FamilyPart, kinds: KindPart
    ) -> None:
        self._database = database
        self._kinds = kinds
        self._settling = settling
        self._events = events
        self._families = families
        self._sql = database.statements("claims/acknowledgements.sql")
        self._keys = Keys(database)
        self._fair_turns = FairTurns(database)
        self._audit = Audit(database)

    async def acknowledge(
        self, transitions: Sequence[Transition], audit: Collection[Audited] = frozenset()
    ) -> Acknowledged:
        """Write the outcomes of claims that are still held; the others come back as stale."""
        if not transitions:
            return Acknowledged(0)
        return await self._database.write(lambda transaction: self.apply(transaction, transitions, audit))

    def apply(
        self, transaction: Transaction, transitions: Sequence[Transition], audit: Collection[Audited] = frozenset()
    ) -> Acknowledged:
        """As `acknowledge`, in an open transaction."""
        stale: list[Claim] = []
        denied: set[JobId] = set()
        links: tuple[tuple[str, str], ...] = ()
        transitions = self._heed_cancels(transaction, transitions)
        waits = [move for move in transitions if move.awaits is not None and move.to is JobState.WAITING]
        if waits:
            transitions = self._heed_arrivals(transaction, transitions, waits)
        keyed = any(transition.claim.unique is not None for transition in transitions)
        if keyed or len({transition.claim.job_id for transition in transitions}) < len(transitions):
            transitions, stale = self._sort(transaction, transitions)
            denied = self._move_keys(transaction, transitions)
        written = self._write(transaction, transitions, denied)
        if written < len(transitions):
            transitions, lost = self._sort(transaction, transitions)
            stale += lost
        if audit:
            self._note(transaction, transitions, denied, audit)
        if transitions:
            ids = to_document([transition.claim.job_id for transition in transitions])
            transaction.change(self._sql["let_go"], {"ids": ids})
            if waits:
                self._events.expect(transaction, [move.claim.job_id for move in waits])
            in_families = [move for move in transitions if _has_family(move) and move.to in FINAL]
            if in_families:
                links = self._settling.settle_transitions(transaction, in_families, audits=Audited.CANCEL in audit)
        return Acknowledged(len(transitions), tuple(stale), links)

    def _note(
        self,
        transaction: Transaction,
        transitions: Sequence[Transition],
        denied: Collection[JobId],
        audit: Collection[Audited],
    ) -> None:
        """Write those moves to the audit trail that are asked for there."""
        rows = []
        for move in transitions:
            if (noted := noted_as(move, audit)) is not None:
                waits = move.claim.job_id in denied and move.to not in FINAL
                state = JobState.PAUSED if waits else move.to
                rows.append((move.claim.job_id, noted.action, state.value, move.failures + move.crashes))
        self._audit.about_moves(transaction, rows)

    def _sort(
        self, transaction: Transaction, transitions: Sequence[Transition]
    ) -> tuple[list[Transition], list[Claim]]:
        """Part the transitions whose claims are held from the claims that are lost; a claim ends only once."""
        rows = [(transition.claim.job_id, transition.claim.token) for transition in transitions]
        ((document,),) = transaction.run(self._sql["stale"], {"rows": to_document(rows)})
        lost = set(from_document(document))
        held: list[Transition] = []
        stale: list[Claim] = []
        seen: set[JobId] = set()
        for index, transition in enumerate(transitions):
            if index in lost or transition.claim.job_id in seen:
                stale.append(transition.claim)
            else:
                seen.add(transition.claim.job_id)
                held.append(transition)
        return held, stale

    def _heed_cancels(self, transaction: Transaction, transitions: Sequence[Transition]) -> Sequence[Transition]:
        """A job whose cancellation was requested does not come back: it is cancelled instead."""
        back = [transition.claim.job_id for transition in transitions if transition.to not in FINAL]
        if not back:
            return transitions
        ((document,),) = transaction.run(self._sql["called_off"], {"ids": to_document(back)})
        why = dict(from_document(document))
        return [
            cancel_instead(move, why[move.claim.job_id]) if move.claim.job_id in why else move for move in transitions
        ]

    def _heed_arrivals(
        self, transaction: Transaction, transitions: Sequence[Transition], waits: list[Transition]
    ) -> Sequence[Transition]:
        """A job whose awaited event or family is there already is ready instead."""
        things = [(move.claim.job_id, thing) for move in waits for thing in move.all_awaits]
        events = {thing.event for _, thing in things if thing.event is not None}
        families = {(job_id, thing.family) for job_id, thing in things if thing.family is not None}
        came = self._events.known(transaction, sorted(events)) if events else set()
        settled = self._families.settled(transaction, sorted(families)) if families else set()
        return [wake_if_there(move, events=came, families=settled) for move in transitions]

    def _move_keys(self, transaction: Transaction, transitions: Sequence[Transition]) -> set[JobId]:
        moves = [
            (transition.claim.job_id, transition.claim.unique, transition.to)
            for transition in transitions
            if transition.claim.unique is not None
        ]
        return self._keys.move(transaction, moves)

    def _write(self, transaction: Transaction, transitions: Sequence[Transition], denied: Collection[JobId]) -> int:
        """Write the new places and the attempts; return how many claims were still held."""
        now = transaction.now
        moves = Moves(now, self._kinds.kept)
        succeeded = JobState.SUCCEEDED
        for transition in transitions:
            if transition.to is succeeded:
                moves.add_success(transition)
            elif transition.claim.job_id in denied and transition.to not in FINAL:
                moves.add(transition, wait_for_key(transition.claim, transition.note))
            else:
                moves.add(transition, transition)
        for statement, rows, moment in (
            ("note_unknown_kinds", moves.unknown_kinds, {"now": now}),
            ("note_priorities", moves.priorities, {}),
            ("note_passed", moves.passes, {}),
            ("record_attempts", moves.attempts, {"now": now}),
            ("note_groups", moves.groups, {"now": now}),
            ("count_failures", moves.groups, {"now": now}),
        ):
            if rows:
                transaction.change(self._sql[statement], {"rows": to_document(rows), **moment})
        written = 0
        for place, placed in (
            ("succeed_plainly", moves.succeed_plainly),
            ("succeed_past_gates", moves.succeed_past_gates),
            ("succeed", moves.succeed),
            ("end", moves.end),
            ("park", moves.park),
        ):
            if placed:
                written += transaction.change(self._sql[place], {"rows": to_document(placed), "now": now})
        if moves.line_up:
            written += self._line_up(transaction, moves.line_up)
        return written

    def _line_up(self, transaction: Transaction, rows: _Rows) -> int:
        """Make jobs ready: those that have failed at the end of the line, the others where they stood."""
        turn = transaction.turns(len(rows))
        if failed := [row for row in rows if row[3] in FAULTS]:
            document = to_document(failed)
            if transaction.change(self._sql["note_turns"], {"rows": document, "turn": turn}) < len(failed):
                self._fair_turns.give(transaction, self._sql["fair_ones"], {"rows": document}, turn)
        return transaction.change(self._sql["line_up"], {"rows": to_document(rows)})


class Moves:
    """The rows of a batch, by the statement that writes them."""

    def __init__(self, now: int, kept_kinds: frozenset[str] = frozenset()) -> None:
        self._now = now
        self._kept_kinds = kept_kinds
        self.succeed_plainly: dict[JobId, int] = {}
        self.succeed_past_gates: dict[int, dict[JobId, str]] = {}  # by token: jobs of one claim share theirs
        self.succeed: _Rows = []
        self.end: _Rows = []
        self.park: _Rows = []
        self.line_up: _Rows = []
        self.attempts: _Rows = []
        self.groups: _Rows = []
        self.unknown_kinds: _Rows = []
        self.passes: _Rows = []
        self.priorities: _Rows = []

    def add_success(self, transition: Transition) -> None:
        """Note a job that is done."""
        claim = transition.claim
        kept_as = claim.kind if claim.kind in self._kept_kinds else None
        if transition.result is not None or transition.warnings or kept_as is not None:
            warnings = warnings_text(transition)
            self.succeed.append((claim.job_id, claim.token, transition.result, warnings, kept_as, claim.gates))
        elif claim.gates is None:
            self.succeed_plainly[claim.job_id] = claim.token
        else:
            self.succeed_past_gates.setdefault(claim.token, {})[claim.job_id] = claim.gates

    def add(self, transition: Transition, move: Transition) -> None:
        """Note where a job goes by `move`; its counts and its failure are those of `transition`."""
        claim = transition.claim
        row = (
            claim.job_id,
            claim.token,
            move.to,
            move.reason,
            _clean(move.note),
            transition.failures,
            transition.crashes,
        )
        is_unknown = transition.reason is Reason.UNKNOWN_KIND
        if is_unknown or claim.unknown_since is not None:
            self.unknown_kinds.append((claim.job_id, claim.token, is_unknown))
        passes = transition.passes if transition.has_passed else None
        comes_back = transition.failure is None and move.to not in FINAL
        if passes is not None or (claim.gates is not None and comes_back):
            self.passes.append((claim.job_id, claim.token, passes, claim.gates if comes_back else None))
        if transition.priority is not None:
            self.priorities.append((claim.job_id, claim.token, transition.priority))
        next_at: int | None = None
        print_ = self._add_group(transition)
        if move.to in FINAL:
            kept_as = claim.kind if claim.kind in self._kept_kinds else None
            gates = None if transition.failure else claim.gates
            self.end.append((*row, kept_as, print_ if move.to is JobState.DEAD else None, gates))
        elif move.to is JobState.READY:
            next_at = self._now
            self.line_up.append(row)
        else:
            next_at = None if move.wait is None else after(self._now, move.wait)
            also = to_document([str(thing) for thing in move.also]) if move.also else None
            keeps_place = transition.reason not in FAULTS
            self.park.append((*row, next_at, None if move.awaits is None else str(move.awaits), also, keeps_place))
        if failure := transition.failure:
            self.attempts.append(
                (
                    claim.job_id,
                    claim.token,
                    claim.attempt,
                    transition.reason,
                    clean(failure.error_type),
                    clean(failure.message),
                    _clean(failure.traceback),
                    next_at,
                    transition.limit,
                    print_,
                    claim.gates,
                )
            )

    def _add_group(self, transition: Transition) -> str | None:
        """Note to which group of failures an attempt that failed belongs; its fingerprint."""
        if (failure := transition.failure) is None:
            return None
        claim, error_type = transition.claim, clean(failure.error_type)
        found = fingerprint(claim.kind, error_type, clean(failure.message))
        is_death = int(transition.to is JobState.DEAD)
        self.groups.append((claim.job_id, claim.token, found.hash, claim.kind, error_type, found.message, is_death))
        return found.hash


def _has_family(move: Transition) -> bool:
    return move.claim.parent is not None or move.claim.is_parent or move.is_parent


def _clean(text: str | None) -> str | None:
    return None if text is None else clean(text)
