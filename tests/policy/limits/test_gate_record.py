"""The record of the gates that an attempt meets (C11): what it passed and when, and how long it was held before."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from perdure.domain.gate import BreakerCheck, BudgetCheck, ConcurrencyCheck, GateRequest, Held, RateCheck
from perdure.domain.gate_record import GateRecord, GateSort, GateVisit
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim
from perdure.policy.limits.gate_record import StoredRecord, let_go, micros, named, note_hold, note_pass, records_of

NOW = datetime(2026, 1, 1, 14, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
CLAIM = Claim(JobId("j"), 7, "mail", "default", "{}", 0, 0, 3, NOW - MINUTE, NOW)
RATE = RateCheck('mail:"tenant-7"', 3, MINUTE)
SLOT = ConcurrencyCheck("mail", 2)
BUDGET = BudgetCheck("ai", 0.3, ((MINUTE, 5.0),))
BREAKER = BreakerCheck("smtp", 3, MINUTE, MINUTE, 1)
OVER_RATE = Held("rate limited", 'mail:"tenant-7": 3 of 3 starts in 1m', MINUTE, key=RATE.key)
NO_SLOT = Held("concurrency limit reached", "mail: 2 of 2 taken", MINUTE, key=SLOT.key)


def request(claim: Claim = CLAIM, *, rates: tuple[RateCheck, ...] = (RATE,)) -> GateRequest:
    """A request for a rate, a slot, a budget and a breaker."""
    names = named(rates, (SLOT,), (BUDGET,), BREAKER)
    return GateRequest(claim=claim, rates=rates, concurrency=(SLOT,), budgets=(BUDGET,), breaker=BREAKER, named=names)


def come_back(claim: Claim, at: datetime, *, due_at: datetime | None = None) -> Claim:
    """The next claim of a job that was held, at this time; it carries the record."""
    return replace(claim, token=claim.token + 1, claimed_at=at, due_at=due_at)


def held(claim: Claim, why: Held, at: datetime) -> Claim:
    return note_hold(request(claim), why, micros(at))


def passed(claim: Claim, at: datetime) -> Claim:
    return note_pass(request(claim), micros(at))


def read(claim: Claim, begun_at: datetime | None = None) -> GateRecord:
    """The record of a claim, as it is shown."""
    assert claim.gates is not None
    [record] = records_of([StoredRecord(claim.gates, begun_at, is_over=False)])
    return record


def visit_to(record: GateRecord, gate: GateSort) -> GateVisit:
    [found] = [visit for visit in record.visits if visit.gate is gate]
    return found


def test_c11_an_attempt_that_passes_at_once_names_its_gates_in_the_order_of_checks() -> None:
    record = read(passed(CLAIM, NOW + SECOND))
    assert record.attempt == 1
    assert [(visit.gate, visit.key, visit.passed_at, visit.estimate) for visit in record.visits] == [
        ("breaker", "smtp", NOW + SECOND, None),
        ("rate", 'mail:"tenant-7"', NOW + SECOND, None),
        ("budget", "ai", NOW + SECOND, 0.3),
        ("concurrency", "mail", NOW + SECOND, None),
    ]
    assert all(visit.held_since is None and visit.passes == 1 for visit in record.visits)


def test_rates_with_the_same_key_are_one_gate() -> None:
    day = RateCheck(RATE.key, 100, 1_440 * MINUTE)
    record = read(note_pass(request(rates=(RATE, day)), micros(NOW)))
    assert [visit.key for visit in record.visits if visit.gate is GateSort.RATE] == [RATE.key]


def test_c11_a_hold_lasts_from_the_first_refusal_until_the_job_was_due_again() -> None:
    claim = held(CLAIM, OVER_RATE, NOW)
    assert visit_to(read(claim), GateSort.RATE).is_held
    claim = passed(come_back(claim, NOW + 255 * SECOND, due_at=NOW + 252 * SECOND), NOW + 256 * SECOND)
    visit = visit_to(read(claim), GateSort.RATE)
    assert (visit.held_since, visit.held_until) == (NOW, NOW + 252 * SECOND)
    assert (visit.held_seconds, visit.passed_at, visit.passes) == (252, NOW + 256 * SECOND, 1)
    assert visit.note == "3 of 3 starts in 1m"


def test_a_job_that_looks_again_in_vain_is_held_all_the_time() -> None:
    claim = held(CLAIM, NO_SLOT, NOW)
    for minute in range(1, 4):
        claim = held(come_back(claim, NOW + minute * MINUTE), NO_SLOT, NOW + minute * MINUTE)
    visit = visit_to(read(claim), GateSort.CONCURRENCY)
    assert (visit.held_since, visit.held_until, visit.passes) == (NOW, None, 0)
    visit = visit_to(read(passed(come_back(claim, NOW + 4 * MINUTE), NOW + 4 * MINUTE)), GateSort.CONCURRENCY)
    assert visit.held_seconds == 240


def test_a_hold_ends_where_the_next_gate_holds_the_job() -> None:
    claim = held(CLAIM, OVER_RATE, NOW)
    claim = held(come_back(claim, NOW + MINUTE, due_at=NOW + MINUTE), NO_SLOT, NOW + MINUTE)
    record = read(claim)
    assert visit_to(record, GateSort.RATE).held_until == NOW + MINUTE
    assert visit_to(record, GateSort.CONCURRENCY).held_since == NOW + MINUTE


def test_holds_at_the_same_gate_with_another_one_between_add_up() -> None:
    claim = held(CLAIM, OVER_RATE, NOW)
    claim = held(come_back(claim, NOW + MINUTE), NO_SLOT, NOW + MINUTE)
    claim = held(come_back(claim, NOW + 3 * MINUTE), OVER_RATE, NOW + 3 * MINUTE)
    record = read(passed(come_back(claim, NOW + 7 * MINUTE), NOW + 7 * MINUTE))
    assert visit_to(record, GateSort.RATE).held_seconds == 5 * 60
    assert visit_to(record, GateSort.CONCURRENCY).held_seconds == 2 * 60


def test_something_else_that_holds_the_job_is_not_charged_to_the_gate() -> None:
    claim = let_go(come_back(held(CLAIM, OVER_RATE, NOW), NOW + MINUTE, due_at=NOW + 50 * SECOND))
    assert visit_to(read(claim), GateSort.RATE).held_until == NOW + 50 * SECOND
    assert let_go(claim) is claim
    assert let_go(CLAIM) is CLAIM


def test_an_attempt_that_was_parked_counts_how_often_it_passed() -> None:
    claim = passed(come_back(passed(CLAIM, NOW), NOW + MINUTE), NOW + MINUTE)
    visit = visit_to(read(claim), GateSort.CONCURRENCY)
    assert (visit.passes, visit.passed_at) == (2, NOW + MINUTE)


@pytest.mark.parametrize("change", [{"failures": 1}, {"since": NOW + 30 * SECOND}], ids=["a retry", "a requeue"])
def test_the_next_attempt_begins_a_new_record(change: dict[str, object]) -> None:
    later = replace(come_back(held(CLAIM, OVER_RATE, NOW), NOW + MINUTE), **change)
    record = read(passed(later, NOW + MINUTE))
    assert record.attempt == later.attempt
    assert visit_to(record, GateSort.RATE).held_since is None


def test_the_record_of_an_attempt_that_is_over_replaces_what_the_job_carried_to_it() -> None:
    first = held(CLAIM, OVER_RATE, NOW)
    then = passed(come_back(first, NOW + MINUTE), NOW + MINUTE)
    assert first.gates is not None
    assert then.gates is not None
    carried = StoredRecord(first.gates, None, is_over=False)
    [record] = records_of([carried, StoredRecord(then.gates, NOW + MINUTE, is_over=True)])
    assert visit_to(record, GateSort.RATE).passed_at == NOW + MINUTE


def test_the_records_of_a_requeued_job_stay_beside_the_new_one() -> None:
    old = passed(CLAIM, NOW)
    new = held(replace(CLAIM, since=NOW + MINUTE), OVER_RATE, NOW + 2 * MINUTE)
    assert old.gates is not None
    assert new.gates is not None
    records = records_of([StoredRecord(new.gates, None, is_over=False), StoredRecord(old.gates, NOW, is_over=True)])
    assert [(record.attempt, visit_to(record, GateSort.RATE).is_held) for record in records] == [(1, False), (1, True)]


def test_a_hold_ends_when_the_job_runs_even_if_nothing_recorded_that() -> None:
    """A crash, a running attempt, and a worker of the previous release write no record."""
    record = read(held(CLAIM, OVER_RATE, NOW), begun_at=NOW + MINUTE)
    visit = visit_to(record, GateSort.RATE)
    assert (visit.held_until, visit.held_seconds, visit.passed_at) == (NOW + MINUTE, 60, None)


@pytest.mark.parametrize("text", ["", "[]", "null", "{", '[1,2,"x"]', '[1,99999999999999999999,[["rate","a"]]]'])
def test_a_damaged_record_hides_no_other(text: str) -> None:
    whole = passed(CLAIM, NOW).gates
    assert whole is not None
    found = records_of([StoredRecord(text, None, is_over=False), StoredRecord(whole, NOW, is_over=True)])
    assert [record.attempt for record in found] == [1]


def test_a_gate_that_only_a_newer_release_knows_stays_as_it_is_written() -> None:
    [record] = records_of([StoredRecord('[1,5,[["quota","web"]]]', None, is_over=False)])
    assert (record.visits[0].gate, record.visits[0].key) == ("quota", "web")


def test_a_record_stays_small() -> None:
    claim = CLAIM
    for number in range(200):
        claim = held(
            come_back(claim, NOW + number * SECOND), Held("rate limited", "x" * 5_000, MINUTE, key=f"k{number}"), NOW
        )
    record = read(claim)
    assert len(record.visits) == 50
    assert record.visits[-1].key == "k199"
    assert max(len(visit.note or "") for visit in record.visits) == 300
