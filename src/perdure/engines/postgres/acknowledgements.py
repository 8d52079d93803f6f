"""How a worker gives jobs back.

The lease is deleted by id and token, and only what was really deleted goes on: a claim that was lost changes nothing
and is reported. Jobs that are simply done, nearly all of them, take a short statement; any other batch takes the long
one. Texts of handlers (errors, notes, results) are stored whatever they hold: a letter that PostgreSQL does not take is
replaced, since an acknowledgement must never be refused for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from msgspec import json

from perdure.clock import Clock
from perdure.domain.states import FINAL, JobState, Reason
from perdure.domain.transition import Transition
from perdure.engines.postgres.arrays import UnstorableTextError, number_array, storable, text_array
from perdure.engines.postgres.connections import Pool
from perdure.engines.postgres.encoding import seconds_text
from perdure.engines.postgres.naming import Naming
from perdure.engines.postgres.wire import Asks, Params
from perdure.storage.records import Acknowledged


class PostgresAcknowledgements:
    """Writes what became of claims, a batch at a time."""

    def __init__(self, naming: Naming, pool: Pool, clock: Clock | None) -> None:
        self._statements = naming.statements("acknowledgements.sql")
        self._pool = pool
        self._clock = clock

    async def acknowledge(self, transitions: Sequence[Transition]) -> Acknowledged:
        """Write what became of claims; those no longer held change nothing and come back as stale."""
        if not transitions:
            return Acknowledged(0)
        if _are_simply_done(transitions):
            return await self._pool.run(partial(self._write_done, transitions))
        rounds = _without_repeats(transitions)
        if len(rounds) == 1:
            return await self._pool.run(partial(self._write, transitions))
        return await self._pool.transaction(partial(self._write_rounds, rounds))

    async def apply(self, transitions: Sequence[Transition], wire: Asks) -> Acknowledged:
        """As `acknowledge`, in a transaction that is open."""
        if _are_simply_done(transitions):
            return await self._write_done(transitions, wire)
        return await self._write_rounds(_without_repeats(transitions), wire)

    async def _write_done(self, moves: Sequence[Transition], wire: Asks) -> Acknowledged:
        moves = _in_order(moves)
        params: Params = {
            "ids": text_array([move.claim.job_id for move in moves]),
            "tokens": number_array([move.claim.token for move in moves]),
            "results": _texts([move.result for move in moves]),
            "warnings": _texts([_warnings(move) for move in moves]),
            "count": len(moves),
            "now": self._clock.now() if self._clock else None,
        }
        return _read(moves, await wire.fetch(self._statements["acknowledge_done"], params))

    async def _write_rounds(self, rounds: Sequence[Sequence[Transition]], wire: Asks) -> Acknowledged:
        answers = [await self._write(moves, wire) for moves in rounds]
        return Acknowledged(
            sum(answer.applied for answer in answers), tuple(claim for answer in answers for claim in answer.stale)
        )

    async def _write(self, moves: Sequence[Transition], wire: Asks) -> Acknowledged:
        moves = _in_order(moves)
        failures = [move.failure for move in moves]
        keys = [_use_of_key(move) for move in moves]
        params: Params = {
            "ids": text_array([move.claim.job_id for move in moves]),
            "tokens": number_array([move.claim.token for move in moves]),
            "states": text_array([move.to for move in moves]),
            "reasons": text_array([move.reason for move in moves]),
            "failures": number_array([move.failures for move in moves]),
            "crashes": number_array([move.crashes for move in moves]),
            "waits": text_array([seconds_text(move.wait) for move in moves]),
            "numbers": number_array([move.claim.attempt for move in moves]),
            "error_types": _texts([failure.error_type if failure else None for failure in failures]),
            "messages": _texts([failure.message if failure else None for failure in failures]),
            "tracebacks": _texts([failure.traceback if failure else None for failure in failures]),
            "results": _texts([move.result for move in moves]),
            "warnings": _texts([_warnings(move) for move in moves]),
            "notes": _texts([move.note for move in moves]),
            "keys": text_array([key for key, _, _ in keys]),
            "key_uses": text_array([use for _, use, _ in keys]),
            "cancel_key_uses": text_array([_use_when_cancelled(move) for move in moves]),
            "kept_fors": text_array([kept_for for _, _, kept_for in keys]),
            "knows_again": text_array([_flag(move.claim.unknown_since is not None) for move in moves]),
            "key_held": Reason.KEY_HELD.value,
            "unknown_kind": Reason.UNKNOWN_KIND.value,
            "count": len(moves),
            "now": self._clock.now() if self._clock else None,
        }
        return _read(moves, await wire.fetch(self._statements["acknowledge"], params))


def _in_order(moves: Sequence[Transition]) -> list[Transition]:
    """By id: two that acknowledge the same jobs then wait for each other in one order, and never in a circle."""
    return sorted(moves, key=lambda move: move.claim.job_id)


def _use_of_key(move: Transition) -> tuple[str | None, str | None, str | None]:
    """The key, what becomes of it, and for how many seconds a dead job keeps it."""
    unique = move.claim.unique
    if unique is None:
        return None, None, None
    if move.to in unique.states:
        return unique.key, "keep" if move.to in FINAL else "hold", None
    if move.to is JobState.DEAD and unique.dead_for is not None:
        return unique.key, "keep", seconds_text(unique.dead_for)
    return unique.key, "free", None


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


def _without_repeats(moves: Sequence[Transition]) -> list[list[Transition]]:
    """Split a batch so that no statement meets a job, or a key, twice; nearly always it stays whole."""
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
    return Acknowledged(applied, tuple(move.claim for number, move in enumerate(moves, start=1) if number not in held))


def _warnings(move: Transition) -> str | None:
    return json.encode([storable(text) for text in move.warnings]).decode() if move.warnings else None


def _texts(values: list[str | None]) -> str | None:
    if not any(values) and values.count(None) == len(values):
        return None
    try:
        return text_array(values)
    except UnstorableTextError:
        return text_array([None if value is None else storable(value) for value in values])
