"""Records the outcomes of claims.

The lease is deleted by id and token, and only deleted ones are processed further: a claim that was lost changes nothing
and is reported. Succeeded jobs, nearly all of them, take a short statement, and a shorter one
still if none has a result; any other batch takes the long one. A batch with parents, children, or jobs that wait for
something takes several statements in one transaction: see `settling`.

Texts of handlers (errors, notes, results) are always stored: a character that PostgreSQL does not accept is replaced,
because an acknowledgement must never be refused for it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Final

from msgspec import json
from msgspec.structs import replace

from perdure.clock import Clock
from perdure.domain.jobs.states import FAULTS, FINAL, JobState, Reason
from perdure.domain.jobs.transition import Transition
from perdure.domain.operate.audit import Audited, noted_as
from perdure.engines.postgres.claims.returned_jobs import ReturnedJobs
from perdure.engines.postgres.database.arrays import number_array, storable, storable_array, text_array
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.encoding import seconds_text
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.wire import Asks, Params
from perdure.engines.postgres.flows.events import EventPart
from perdure.engines.postgres.flows.settling import Settling
from perdure.engines.postgres.operate.views.kinds import KindPart
from perdure.policy.decide import wake_if_there
from perdure.policy.fingerprints import Fingerprint, fingerprint
from perdure.storage.records import Acknowledged

NONE: Final[frozenset[Audited]] = frozenset()
_EVENTS_PER_TRANSACTION: Final = 1_000
_FAULTS: Final = text_array(sorted(FAULTS))


class AcknowledgementPart:
    """Writes the outcomes of claims, a batch at a time.

    It has seven collaborators because one transaction ends a claim and everything that depends on it: families, events,
    kept results, and the marks of claims.
    """

    def __init__(
        self,
        *,
        naming: Naming,
        pool: Pool,
        clock: Clock | None,
        settling: Settling,
        events: EventPart,
        returns: ReturnedJobs,
        kinds: KindPart,
    ) -> None:
        self._kinds = kinds
        self._statements = naming.statements("claims/acknowledgements.sql")
        self._pool = pool
        self._clock = clock
        self._settling = settling
        self._events = events
        self._returns = returns

    async def acknowledge(self, transitions: Sequence[Transition], audit: Collection[Audited] = NONE) -> Acknowledged:
        """Write the outcomes of claims; those no longer held change nothing and come back as stale."""
        if not transitions:
            return Acknowledged(0)
        if _concern_flows(transitions):
            parts = [
                await self._pool.transaction(partial(self._write_flows, part, audit))
                for part in _with_few_events(transitions)
            ]
            self._returns.expected = True
            return _joined(parts)
        if _are_simply_done(transitions):
            return await self._pool.run(partial(self._write_done, transitions))
        rounds = _without_repeats(transitions)
        if len(rounds) == 1:
            answer = await self._pool.run(partial(self._write, transitions, audit))
        else:
            answer = await self._pool.transaction(partial(self._write_rounds, rounds, audit))
        if any(move.to is JobState.READY for move in transitions):
            self._returns.expected = True
        return answer

    async def apply(
        self, transitions: Sequence[Transition], wire: Asks, audit: Collection[Audited] = NONE
    ) -> Acknowledged:
        """As `acknowledge`, in an open transaction."""
        if _concern_flows(transitions):
            return await self._write_flows(transitions, audit, wire)
        if _are_simply_done(transitions):
            return await self._write_done(transitions, wire)
        return await self._write_rounds(_without_repeats(transitions), audit, wire)

    async def _write_flows(self, moves: Sequence[Transition], audit: Collection[Audited], wire: Asks) -> Acknowledged:
        """Lock the rows that others may touch, write the moves, and apply their consequences."""
        things = [(move.claim.job_id, thing) for move in moves for thing in move.all_awaits]
        events = {thing.event for _, thing in things if thing.event is not None}
        came = await self._events.came(wire, events)
        related = [move for move in moves if _is_related(move)]
        families = {(job_id, thing.family) for job_id, thing in things if thing.family is not None}
        settled = await self._settling.lock(wire, [(move.claim.job_id, move.to in FINAL) for move in related], families)
        moves = [wake_if_there(move, events=came, families=settled) for move in moves]
        if _are_simply_done(moves):
            answer = await self._write_done(moves, wire)
        else:
            answer = await self._write_rounds(_without_repeats(moves), audit, wire)
        stale = {(claim.job_id, claim.token) for claim in answer.stale}
        if any(move.also for move in moves):
            await self._wait_for_more(
                [move for move in moves if (move.claim.job_id, move.claim.token) not in stale], wire
            )
        held = [move.claim for move in related if (move.claim.job_id, move.claim.token) not in stale]
        links = await self._settling.settle(wire, [claim.job_id for claim in held], audits=Audited.CANCEL in audit)
        return replace(answer, links=links) if links else answer

    async def _wait_for_more(self, moves: Sequence[Transition], wire: Asks) -> None:
        waits = [move for move in moves if move.also and move.to is JobState.WAITING]
        params: Params = {
            "ids": text_array([move.claim.job_id for move in waits]),
            "also": text_array([_texts([str(thing) for thing in move.also]) for move in waits]),
        }
        await wire.fetch(self._statements["wait_for_more"], params)

    async def _write_done(self, moves: Sequence[Transition], wire: Asks) -> Acknowledged:
        is_plain = all(
            [  # noqa: C419 - a list is faster
                move.result is None and not move.warnings and move.claim.gates is None for move in moves
            ]
        )
        if is_plain and self._kept_as(moves) is None:
            return await self._write_plain(moves, wire)
        moves = _in_order(moves)
        params: Params = {
            "ids": text_array([move.claim.job_id for move in moves]),
            "tokens": number_array([move.claim.token for move in moves]),
            "results": storable_array([move.result for move in moves]),
            "warnings": storable_array([_texts(move.warnings) for move in moves]),
            "kept": self._kept_as(moves),
            "gates": storable_array([move.claim.gates for move in moves]),
            "count": len(moves),
            "now": self._clock.now() if self._clock else None,
        }
        return _read(moves, await wire.fetch(self._statements["acknowledge_done"], params))

    def _kept_as(self, moves: Sequence[Transition]) -> str | None:
        """The kinds of those jobs whose kind has its own retention; None: there are none."""
        kept = self._kinds.kept
        if not kept or not any(move.claim.kind in kept for move in moves):
            return None
        return text_array([move.claim.kind if move.claim.kind in kept else None for move in moves])

    async def _write_plain(self, moves: Sequence[Transition], wire: Asks) -> Acknowledged:
        """Adjacent jobs of one claim are written together; all in the order of ids."""
        tokens: list[int] = []
        ids: list[str] = []
        for token, together in groupby(_in_order(moves), key=lambda move: move.claim.token):
            tokens.append(token)
            ids.append("{" + ",".join([move.claim.job_id for move in together]) + "}")
        params: Params = {
            "ids": text_array(ids),
            "tokens": number_array(tokens),
            "count": len(moves),
            "now": self._clock.now() if self._clock else None,
        }
        return _read(moves, await wire.fetch(self._statements["acknowledge_plain"], params))

    async def _write_rounds(
        self, rounds: Sequence[Sequence[Transition]], audit: Collection[Audited], wire: Asks
    ) -> Acknowledged:
        return _joined([await self._write(moves, audit, wire) for moves in rounds])

    async def _write(self, moves: Sequence[Transition], audit: Collection[Audited], wire: Asks) -> Acknowledged:
        moves = _in_order(moves)
        failures = [move.failure for move in moves]
        keys = [_use_of_key(move) for move in moves]
        prints = [_fingerprint(move) for move in moves]
        params: Params = {
            "ids": text_array([move.claim.job_id for move in moves]),
            "tokens": number_array([move.claim.token for move in moves]),
            "states": text_array([move.to for move in moves]),
            "reasons": text_array([move.reason for move in moves]),
            "failures": number_array([move.failures for move in moves]),
            "crashes": number_array([move.crashes for move in moves]),
            "waits": text_array([seconds_text(move.wait) for move in moves]),
            "numbers": number_array([move.claim.attempt for move in moves]),
            "error_types": storable_array([failure.error_type if failure else None for failure in failures]),
            "messages": storable_array([failure.message if failure else None for failure in failures]),
            "tracebacks": storable_array([failure.traceback if failure else None for failure in failures]),
            "limits": text_array([None if move.limit is None else str(move.limit) for move in moves]),
            "results": storable_array([move.result for move in moves]),
            "warnings": storable_array([_texts(move.warnings) for move in moves]),
            "notes": storable_array([move.note for move in moves]),
            "keys": text_array([key for key, _, _ in keys]),
            "key_uses": text_array([use for _, use, _ in keys]),
            "cancel_key_uses": text_array([_use_when_cancelled(move) for move in moves]),
            "kept_fors": text_array([kept_for for _, _, kept_for in keys]),
            "awaits": storable_array([None if move.awaits is None else str(move.awaits) for move in moves]),
            "passes": text_array([move.passes if move.has_passed else None for move in moves]),
            "knows_again": text_array([_flag(move.claim.unknown_since is not None) for move in moves]),
            "actions": storable_array([_action(move, audit) for move in moves]) if audit else None,
            "cancel_action": Audited.CANCEL.action if Audited.CANCEL in audit else None,
            "faults": _FAULTS,
            "kept": self._kept_as(moves),
            "fingerprints": text_array([found.hash if found else None for found in prints]),
            "group_kinds": text_array([move.claim.kind if move.failure else None for move in moves]),
            "group_messages": storable_array([found.message if found else None for found in prints]),
            "gates": storable_array([move.claim.gates for move in moves]),
            "priorities": text_array([None if move.priority is None else str(move.priority) for move in moves]),
            "key_held": Reason.KEY_HELD.value,
            "unknown_kind": Reason.UNKNOWN_KIND.value,
            "count": len(moves),
            "now": self._clock.now() if self._clock else None,
        }
        return _read(moves, await wire.fetch(self._statements["acknowledge"], params))


def _in_order(moves: Sequence[Transition]) -> list[Transition]:
    """By id: two callers that acknowledge the same jobs lock them in one order, so they cannot deadlock."""
    return sorted(moves, key=lambda move: move.claim.job_id)


def _fingerprint(move: Transition) -> Fingerprint | None:
    failure = move.failure
    if failure is None:
        return None
    return fingerprint(move.claim.kind, storable(failure.error_type), storable(failure.message))


def _use_of_key(move: Transition) -> tuple[str | None, str | None, str | None]:
    """The key, its next use, and for how many seconds a dead job keeps it."""
    unique = move.claim.unique
    if unique is None:
        return None, None, None
    if move.to in unique.states:
        return unique.key, "keep" if move.to in FINAL else "hold", None
    if move.to is JobState.DEAD and unique.dead_for is not None:
        return unique.key, "keep", seconds_text(unique.dead_for)
    return unique.key, "free", None


def _action(move: Transition, audit: Collection[Audited]) -> str | None:
    noted = noted_as(move, audit)
    return None if noted is None else noted.action


def _flag(value: bool) -> str:
    return "t" if value else "f"


def _use_when_cancelled(move: Transition) -> str | None:
    unique = move.claim.unique
    if unique is None:
        return None
    return "keep" if JobState.CANCELLED in unique.states else "free"


def _are_simply_done(moves: Sequence[Transition]) -> bool:
    done = JobState.SUCCEEDED
    if not all([move.to is done and move.claim.unique is None for move in moves]):  # noqa: C419 - a list is faster here
        return False
    return len({move.claim.job_id for move in moves}) == len(moves)


def _is_related(move: Transition) -> bool:
    """Whether the job has a parent or children that its end may affect."""
    claim = move.claim
    return claim.parent is not None or claim.is_parent or move.is_parent


def _concern_flows(moves: Sequence[Transition]) -> bool:
    return any(
        [  # noqa: C419 - a list is faster here
            move.awaits is not None or move.is_parent or (claim := move.claim).is_parent or claim.parent is not None
            for move in moves
        ]
    )


def _with_few_events(moves: Sequence[Transition]) -> list[Sequence[Transition]]:
    """Split a batch that waits for very many events: each is locked, and a server has room for some thousands."""
    if sum(len(move.all_awaits) for move in moves) <= _EVENTS_PER_TRANSACTION:
        return [moves]
    parts: list[Sequence[Transition]] = []
    part: list[Transition] = []
    events = 0
    for move in moves:
        if part and events + len(move.all_awaits) > _EVENTS_PER_TRANSACTION:
            parts.append(part)
            part, events = [], 0
        part.append(move)
        events += len(move.all_awaits)
    return [*parts, part]


def _joined(answers: Sequence[Acknowledged]) -> Acknowledged:
    if len(answers) == 1:
        return answers[0]
    applied = sum(answer.applied for answer in answers)
    stale = tuple(claim for answer in answers for claim in answer.stale)
    return Acknowledged(applied, stale, tuple(link for answer in answers for link in answer.links))


def _without_repeats(moves: Sequence[Transition]) -> list[list[Transition]]:
    """Split a batch so that no statement has a job, or a key, twice; nearly always it stays whole."""
    rounds: list[list[Transition]] = []
    seen: dict[str, int] = {}
    for move in moves:
        turn = seen.get(move.claim.job_id, 0)
        unique = move.claim.unique
        if unique:
            turn = max(turn, seen.get(f"key {unique.key}", 0))
            seen[f"key {unique.key}"] = turn + 1
        seen[move.claim.job_id] = turn + 1
        if turn == len(rounds):
            rounds.append([])
        rounds[turn].append(move)
    return rounds


def _read(moves: Sequence[Transition], rows: Sequence[tuple[Any, ...]]) -> Acknowledged:
    [[written, applied]] = rows
    if applied == len(moves):
        return Acknowledged(applied)
    held = set(written or ())
    return Acknowledged(applied, tuple(move.claim for move in moves if move.claim.job_id not in held))


def _texts(texts: Sequence[str]) -> str | None:
    return json.encode([storable(text) for text in texts]).decode() if texts else None
