"""The record of the gates that an attempt meets: written into its claim as it passes them, or is held.

The worker has the record in `Claim.gates`, as text, and the store keeps that text when it writes where the claim goes
next. So a record costs no statement of its own, and exact times only where a gate was asked: a job that passes because
of a loan does so when it is claimed.

Nearly every attempt passes all of its gates at once. Its record is one text with the names of its gates, which
`GatePlan` prepares, and one time; only the record of an attempt that was held, or parked, is read and written again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from perdure.domain.gate import BreakerCheck, BudgetCheck, ConcurrencyCheck, GateRequest, Held, RateCheck
from perdure.domain.gate_record import GateRecord, GateSort, GateVisit
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import Reason
from perdure.domain.stored_words import read_word

_MOST_VISITS: Final = 50  # an attempt that is redeployed again and again may meet any number of gates
_NOTE_LIMIT_CHARACTERS: Final = 300
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_SECOND: Final = 1_000_000  # in microseconds
_AT_ONCE: Final = 0  # it passed at the time of the record
_HELD_BY: Final = {
    Reason.BREAKER_OPEN.value: GateSort.BREAKER,
    Reason.RATE_LIMITED.value: GateSort.RATE,
    Reason.BUDGET_EXCEEDED.value: GateSort.BUDGET,
    Reason.CONCURRENCY_REACHED.value: GateSort.CONCURRENCY,
}


_Micros = Annotated[int, Meta(ge=0, le=253_402_300_799_999_999)]  # until the end of the calendar


class _Visit(Struct, array_like=True, gc=False):
    """A visit as stored: times in microseconds."""

    gate: str
    key: str
    passed_at: _Micros | None = _AT_ONCE
    estimate: float | None = None
    passes: int = 1
    held_since: _Micros | None = None
    held_until: _Micros | None = None
    held: int = 0
    note: str | None = None

    @property
    def is_held(self) -> bool:
        """Whether it holds the job."""
        return self.held_since is not None and self.held_until is None

    def let_go(self, at: int) -> None:
        """End a hold."""
        since = at if self.held_since is None else self.held_since
        self.held_until = max(since, at)
        self.held += self.held_until - since


class _Record(Struct, array_like=True, gc=False):
    """A record as stored: the number of the attempt, when it was last changed, and its visits."""

    attempt: int
    at: _Micros
    visits: list[_Visit]


_Visits = dict[tuple[str, str], _Visit]

_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(_Record)
_visits_decoder: Final = msgspec.json.Decoder(list[_Visit])


def named(
    rates: Sequence[RateCheck] = (),
    concurrency: Sequence[ConcurrencyCheck] = (),
    budgets: Sequence[BudgetCheck] = (),
    breaker: BreakerCheck | None = None,
) -> str:
    """These gates as a part of a record; those with the same key once."""
    met: list[tuple[object, ...]] = [] if breaker is None else [(GateSort.BREAKER, breaker.name)]
    met += dict.fromkeys((GateSort.RATE, rate.key) for rate in rates)
    met += [(GateSort.BUDGET, budget.name, _AT_ONCE, budget.estimate) for budget in budgets]
    met += dict.fromkeys((GateSort.CONCURRENCY, slot.key) for slot in concurrency)
    return ",".join([_encoder.encode(each).decode() for each in met])


def note_pass(request: GateRequest, at: int) -> Claim:
    """The claim of a request that has passed all its gates at this time, in microseconds."""
    claim = request.claim
    if claim.gates is None:
        return replace(claim, gates=f"[{claim.failures + claim.crashes + 1},{at},[{request.named}]]")
    visits = _visits_so_far(claim)
    _let_go(visits, claim, at)
    for new in _visits_decoder.decode(f"[{request.named}]"):
        visit = visits.setdefault((new.gate, new.key), new)
        visit.passes += visit is not new
        visit.passed_at, visit.estimate = at, new.estimate
    return _with(claim, at, visits)


def note_hold(request: GateRequest, why: Held, at: int) -> Claim:
    """The claim of a request that a gate holds from this time on, in microseconds."""
    claim, gate = request.claim, _HELD_BY[why.reason]
    visits = _visits_so_far(claim)
    visit = visits.pop((gate, why.key), None) or _Visit(gate, why.key, None, passes=0)
    if not visit.is_held:
        visit.held_since, visit.held_until = at, None
    visit.note = why.note.removeprefix(f"{why.key}: ")[:_NOTE_LIMIT_CHARACTERS]
    _let_go(visits, claim, at)
    visits[gate, why.key] = visit
    return _with(claim, at, visits)


def let_go(claim: Claim) -> Claim:
    """The claim if no gate has held it since it was due again, because something else holds it now."""
    if claim.gates is None:
        return claim
    visits = _visits_so_far(claim)
    at = micros(claim.claimed_at)
    return _with(claim, at, visits) if _let_go(visits, claim, at) else claim


class StoredRecord(NamedTuple):
    """A record as an engine finds it, and when the attempt began to run (or the job ended, if it never ran).

    Not `is_over`: the job carries it to its next run, and it may be of an attempt that has a later record.
    """

    text: str
    begun_at: datetime | None
    is_over: bool


def records_of(stored: Iterable[StoredRecord]) -> list[GateRecord]:
    """The records of a job, oldest first; damaged ones are left out."""
    found = [(record, each) for each in stored if (record := _read(each.text)) is not None]
    over = [record for record, each in found if each.is_over]
    kept = [(record, each) for record, each in found if each.is_over or not _has_later(record, over)]
    kept.sort(key=lambda pair: pair[0].at)
    return [_shown(record, each.begun_at) for record, each in kept]


def micros(moment: datetime) -> int:
    """A time as records have it."""
    return (moment - _EPOCH) // _MICROSECOND


def _visits_so_far(claim: Claim) -> _Visits:
    """Those of the record that a claim has; none if that is of an earlier attempt."""
    record = None if claim.gates is None else _read(claim.gates)
    if record is None or record.attempt != claim.attempt or record.at < micros(claim.since):
        return {}
    return {(visit.gate, visit.key): visit for visit in record.visits}


def _let_go(visits: _Visits, claim: Claim, at: int) -> bool:
    """End the holds that lasted until the job was due again; returns whether there were any."""
    open_ones = [visit for visit in visits.values() if visit.is_held]
    for visit in open_ones:
        visit.let_go(min(micros(claim.due_at or claim.claimed_at), at))
    return bool(open_ones)


def _with(claim: Claim, at: int, visits: _Visits) -> Claim:
    record = _Record(claim.attempt, at, list(visits.values())[-_MOST_VISITS:])
    return replace(claim, gates=_encoder.encode(record).decode())


def _read(text: str) -> _Record | None:
    """A record; None if it is damaged, or of a newer release: it must hide nothing else."""
    try:
        record = _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return None
    for visit in record.visits:
        if visit.passed_at == _AT_ONCE:
            visit.passed_at = record.at
    return record


def _has_later(record: _Record, others: Iterable[_Record]) -> bool:
    return any(other.attempt == record.attempt and other.at >= record.at for other in others)


def _shown(record: _Record, begun_at: datetime | None) -> GateRecord:
    for visit in record.visits:
        if begun_at is not None and visit.is_held:
            visit.let_go(micros(begun_at))
    return GateRecord(record.attempt, tuple(map(_shown_visit, record.visits)))


def _shown_visit(visit: _Visit) -> GateVisit:
    return GateVisit(
        gate=read_word(GateSort, visit.gate),
        key=visit.key,
        passed_at=_moment(visit.passed_at),
        passes=visit.passes,
        estimate=visit.estimate,
        held_since=_moment(visit.held_since),
        held_until=_moment(visit.held_until),
        held_seconds=visit.held / _SECOND,
        note=visit.note,
    )


def _moment(at: int | None) -> datetime | None:
    return None if at is None else _EPOCH + timedelta(microseconds=at)
