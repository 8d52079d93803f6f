"""What of a gate is lent to a worker; no limit is exceeded when workers borrow, give back, die or hear nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from perdure.clock import ManualClock
from perdure.domain.gate import (
    BreakerCheck,
    BudgetCheck,
    ConcurrencyCheck,
    GateChanges,
    GateRequest,
    GateState,
    Loan,
    LoanKey,
    RateCheck,
    Spending,
    Start,
)
from perdure.domain.jobs.ids import JobId, WorkerId
from perdure.domain.jobs.job import Claim
from perdure.policy.limits.gatekeeping import RATE_LIMITED, gatekeeper
from perdure.policy.limits.lending import LONGEST_LOAN, SLOTS, SMALLEST_LENT_LIMIT
from perdure.worker.gates.loans import Loans, Spare

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
NO_JOB = JobId("")
NOTHING = Spare([], [])


def request(job: str, *checks: RateCheck | ConcurrencyCheck) -> GateRequest:
    return GateRequest(
        claim=Claim(JobId(job), 1, "send", "default", "{}", 0, 0, 3, NOW, NOW, is_fresh=True),
        rates=tuple(check for check in checks if isinstance(check, RateCheck)),
        concurrency=tuple(check for check in checks if isinstance(check, ConcurrencyCheck)),
    )


def came_back(one: GateRequest) -> GateRequest:
    """The same for a job that has been somewhere else."""
    return replace(one, claim=replace(one.claim, is_fresh=False))


def lent(*requests: GateRequest, lately: int = 0, **known: Any) -> tuple[set[Loan], set[JobId]]:
    """What these are lent, and to whom."""
    changes = decided(requests, lately, **known)
    return set(changes.loans), {job_id for job_id, _ in changes.borrowers}


def decided(requests: tuple[GateRequest, ...], lately: int, **known: Any) -> GateChanges:
    nothing = {"now": NOW, "starts": {}, "holders": {}, "spending": {}, "breakers": {}, "lends": True}
    state: dict[str, Any] = nothing | known
    return gatekeeper(requests, lambda _: lately)(GateState(**state))[1]


# What is lent


def test_g8_a_slot_is_lent_instead_of_held_up_to_half_of_the_limit() -> None:
    jobs = [request(f"job {number}", ConcurrencyCheck("api", 10)) for number in range(7)]
    changes = decided(tuple(jobs), 0, holders={"api": 1})
    assert changes.loans == (Loan("api", SLOTS, 4),)
    assert {job_id for job_id, _ in changes.borrowers} == {f"job {number}" for number in range(4)}
    assert [job_id for _, job_id, _ in changes.holds] == ["job 4", "job 5", "job 6"]


def test_g8_starts_are_lent_a_few_ahead_and_as_many_as_were_used_lately() -> None:
    job = request("job", RateCheck("api", 1_000, SECOND))
    assert lent(job) == ({Loan("api", SECOND, 21)}, {"job"})
    assert lent(job, lately=70) == ({Loan("api", SECOND, 71)}, {"job"})
    assert lent(job, lately=600, lent={("api", SECOND): 100}) == ({Loan("api", SECOND, 150)}, {"job"})
    assert lent(job, lent={("api", SECOND): 250}) == (set(), set())


def test_g8_a_job_borrows_of_all_its_gates_or_of_none() -> None:
    both = request("job", RateCheck("api", 100, SECOND), ConcurrencyCheck("tenant", 10))
    assert lent(both) == ({Loan("api", SECOND, 3), Loan("tenant", SLOTS, 1)}, {"job"})
    changes = decided((both,), 0, holders={"tenant": 5})
    assert (changes.loans, changes.borrowers) == ((), frozenset())
    assert [hold[0] for hold in changes.holds] == ["tenant"]
    assert changes.starts == (Start("api", NOW, JobId("job"), True),)


@pytest.mark.parametrize(
    "job",
    [
        request("small slots", ConcurrencyCheck("api", SMALLEST_LENT_LIMIT - 1)),
        request("small rate", RateCheck("api", SMALLEST_LENT_LIMIT - 1, SECOND)),
        request("long rate", RateCheck("api", 100, LONGEST_LOAN + SECOND)),
        request("two rates of one key", RateCheck("api", 100, SECOND), RateCheck("api", 400, 10 * SECOND)),
        request("slots named twice", ConcurrencyCheck("api", 10), ConcurrencyCheck("api", 20)),
        replace(request("disputed", ConcurrencyCheck("api", 10)), borrows=False),
        came_back(request("back", ConcurrencyCheck("api", 10))),
        GateRequest(claim=request("budget").claim, budgets=(BudgetCheck("ai", 0, ()),)),
        GateRequest(claim=request("breaker").claim, breaker=BreakerCheck("tsa", 5, MINUTE, MINUTE, 1)),
    ],
    ids=lambda job: job.claim.job_id,
)
def test_g8_what_is_not_lent(job: GateRequest) -> None:
    assert lent(job, spending={"ai": Spending()}) == (set(), set())


def test_g8_nothing_is_lent_while_a_job_stands_in_line_or_counts_for_longer() -> None:
    job = request("job", RateCheck("api", 100, SECOND))
    assert lent(job, starts={"api": [Start("api", NOW + MINUTE, JobId("other"), False)]}) == (set(), set())
    assert lent(job, watched=frozenset({"api"})) == (set(), set())
    assert lent(job, watched=frozenset({"other"}))[1] == {"job"}
    slot = request("job", ConcurrencyCheck("api", 100))
    assert lent(slot, awaited={"api"}) == (set(), set())
    assert lent(slot, awaited={"other"})[1] == {"job"}


def test_g8_a_job_with_two_rates_borrows_of_both() -> None:
    job = request("job", RateCheck("api", 100, SECOND), RateCheck("mail", 40, 2 * SECOND))
    assert lent(job) == ({Loan("api", SECOND, 3), Loan("mail", 2 * SECOND, 1)}, {"job"})


def test_g8_without_a_borrower_that_lives_nothing_is_lent() -> None:
    job = request("job", ConcurrencyCheck("api", 10))
    assert lent(job, lends=False) == (set(), set())
    state = GateState(now=NOW, starts={}, holders={}, spending={}, breakers={}, lends=True)
    _, changes = gatekeeper([job])(state)
    assert (changes.loans, changes.borrowers) == ((), frozenset())


def test_g8_what_is_lent_counts_as_begun() -> None:
    jobs = [request(f"job {number}", RateCheck("api", 12, SECOND)) for number in range(4)]
    starts = {"api": [Start("api", NOW - SECOND / 2, NO_JOB, True)] * 3}
    answers, _ = gatekeeper(jobs)(
        GateState(now=NOW, starts=starts, holders={}, spending={}, breakers={}, lent={("api", SECOND): 7})
    )
    assert [held is None for held in answers] == [True, True, False, False]
    held = answers[2]
    assert held is not None
    assert (held.reason, held.wait) == (RATE_LIMITED, SECOND / 2)
    assert held.note.startswith("api: 12 of 12 starts in 1s")


def test_g8_a_line_is_laid_out_at_the_full_rate_although_some_of_it_is_lent() -> None:
    jobs = [request(f"job {number}", RateCheck("api", 20, SECOND)) for number in range(400)]
    state = GateState(now=NOW, starts={}, holders={}, spending={}, breakers={}, lent={("api", SECOND): 5})
    answers, _ = gatekeeper(jobs)(state)
    waits = [held.wait for held in answers if held]
    assert len(waits) == 385
    assert max(waits) == 20 * SECOND


def test_g8_who_counts_for_longer_than_what_is_lent_waits_until_it_is_back() -> None:
    job = request("job", RateCheck("api", 1_000, MINUTE))
    state = GateState(now=NOW, starts={}, holders={}, spending={}, breakers={}, lent={("api", SECOND): 1})
    [held], changes = gatekeeper([job])(state)
    assert held is not None
    assert held.wait == SECOND
    assert changes.starts == (Start("api", NOW + SECOND, JobId("job"), False),)
    [held], _ = gatekeeper([job])(GateState(now=NOW, starts={}, holders={}, spending={}, breakers={}))
    assert held is None


# The books of a worker


def books(*, sure: bool = True) -> tuple[Loans, ManualClock]:
    clock = ManualClock(NOW)
    loans = Loans(clock, lambda: sure)
    loans.belong_to(WorkerId(1))
    return loans, clock


def test_g8_a_slot_is_used_by_one_job_after_the_other() -> None:
    loans, _ = books()
    first, second, third = (request(name, ConcurrencyCheck("api", 10)) for name in ("first", "second", "third"))
    assert loans.passes([first]) == [False]
    loans.add([Loan("api", SLOTS, 1)], [first])
    assert loans.passes([second]) == [False]
    assert loans.ended((JobId("first"), 1)) == []
    assert loans.passes([second, third]) == [True, False]
    assert loans.ended((JobId("first"), 1)) == []
    assert loans.passes([third]) == [False]


def test_g8_a_start_is_used_again_when_its_time_is_over() -> None:
    loans, clock = books()
    jobs = [request(f"job {number}", RateCheck("api", 100, SECOND)) for number in range(5)]
    loans.add([Loan("api", SECOND, 2)], [jobs[0]])
    assert loans.passes(jobs[1:3]) == [True, False]
    assert loans.ended((JobId("job 0"), 1)) == []
    assert loans.passes(jobs[2:3]) == [False]
    clock.move(1.01 * SECOND)
    assert loans.passes(jobs[2:]) == [True, True, False]
    assert loans.used_lately(("api", SECOND)) == 4


def test_g8_a_start_is_not_used_too_early_by_a_clock_that_is_faster_than_the_database_s() -> None:
    """A second of the database may take a little more than one here."""
    loans, clock = books()
    jobs = [request(name, RateCheck("api", 100, SECOND)) for name in ("one", "two")]
    loans.add([Loan("api", SECOND, 1)], jobs[:1])
    clock.move(1.009 * SECOND)
    assert loans.passes(jobs[1:]) == [False]
    assert loans.spare([("api", SECOND)], all_free=True) == NOTHING
    clock.move(0.002 * SECOND)
    assert loans.passes(jobs[1:]) == [True]


def test_g8_who_asks_for_another_limit_has_to_ask() -> None:
    loans, _ = books()
    loans.add([Loan("api", SLOTS, 3)], [request("job", ConcurrencyCheck("api", 10))])
    assert loans.passes([request("other", ConcurrencyCheck("api", 5))]) == [False]
    assert loans.passes([request("other", ConcurrencyCheck("api", 10))]) == [True]


def test_g8_no_job_passes_on_a_loan_while_it_is_unsure_that_the_worker_lives() -> None:
    loans, _ = books(sure=False)
    loans.add([Loan("api", SLOTS, 3)], [request("job", ConcurrencyCheck("api", 10))])
    assert loans.passes([request("other", ConcurrencyCheck("api", 10))]) == [False]


def test_g8_a_job_that_may_stand_in_a_line_has_to_ask() -> None:
    loans, _ = books()
    loans.add([Loan("api", SLOTS, 3)], [request("job", ConcurrencyCheck("api", 10))])
    assert loans.passes([came_back(request("back", ConcurrencyCheck("api", 10)))]) == [False]


def test_g8_no_job_uses_a_loan_of_two_limits() -> None:
    loans, _ = books()
    small, large = (request(name, ConcurrencyCheck("api", limit)) for name, limit in (("small", 10), ("large", 99)))
    loans.add([Loan("api", SLOTS, 1)], [small])
    assert loans.passes([small, large]) == [False, False]
    loans.add([Loan("api", SLOTS, 5)], [large])
    assert loans.passes([small, large]) == [False, False]


def test_g8_no_job_uses_a_loan_of_two_limits_that_came_at_once() -> None:
    loans, _ = books()
    small, large = (request(name, ConcurrencyCheck("api", limit)) for name, limit in (("small", 10), ("large", 99)))
    loans.add([Loan("api", SLOTS, 5)], [small, large])
    assert loans.passes([small, large]) == [False, False]


def test_g8_a_loan_that_no_job_may_use_is_not_extended_and_goes_back() -> None:
    loans, _ = books()
    small, large = (request(name, ConcurrencyCheck("api", limit)) for name, limit in (("small", 10), ("large", 99)))
    loans.add([Loan("api", SLOTS, 2)], [small, large])
    assert loans.used_lately(("api", SLOTS)) is None
    for job in (small, large):
        loans.ended((job.claim.job_id, 1))
    assert loans.spare(API, all_free=True) == ([Loan("api", SLOTS, 2)], [])
    assert loans.used_lately(("api", SLOTS)) == 0


API = [("api", SLOTS)]


def test_g8_what_was_not_used_since_the_last_look_goes_back() -> None:
    loans, _ = books()
    jobs = [request(f"job {number}", ConcurrencyCheck("api", 10)) for number in range(3)]
    loans.add([Loan("api", SLOTS, 3)], jobs)
    for job in jobs[1:]:
        loans.ended((job.claim.job_id, 1))
    assert loans.spare(API) == ([], [])
    assert loans.spare(API) == ([Loan("api", SLOTS, 2)], [])
    assert loans.spare(API) == ([], [])
    loans.ended((JobId("job 0"), 1))
    assert loans.spare(API) == ([], [])
    assert loans.spare(API) == ([Loan("api", SLOTS, 1)], [])
    assert loans.names == []
    assert loans.passes([jobs[1]]) == [False]


def test_g8_while_others_wait_a_free_slot_goes_back_at_once() -> None:
    loans, _ = books()
    jobs = [request(f"job {number}", ConcurrencyCheck("api", 10)) for number in range(3)]
    loans.add([Loan("api", SLOTS, 3)], jobs[:2])
    assert loans.wanted_among(API) == []
    loans.went(NOTHING, API, API)
    assert loans.wanted_among(API) == API
    assert loans.passes(jobs[2:]) == [False]
    assert loans.spare(API) == ([Loan("api", SLOTS, 1)], [])
    assert loans.ended((JobId("job 0"), 1)) == ["api"]
    loans.went(NOTHING, API, [])
    assert loans.passes(jobs[2:]) == [True]


def test_g8_what_may_have_been_lent_is_not_added_to_and_said_after_a_minute() -> None:
    loans, clock = books()
    job = request("job", ConcurrencyCheck("api", 10), RateCheck("mail", 50, SECOND))
    loans.doubt([job, request("never lent", ConcurrencyCheck("tenant", 1))])
    assert set(loans.names) == {("api", SLOTS), ("mail", SECOND)}
    assert loans.used_lately(("api", SLOTS)) is None
    assert loans.used_lately(("tenant", SLOTS)) == 0
    assert loans.spare(loans.names) == ([], [])
    clock.move(MINUTE + SECOND)
    said = loans.spare(loans.names)
    assert set(said.left) == {Loan("api", SLOTS, 0), Loan("mail", SECOND, 0)}
    loans.failed(said)
    assert loans.spare(loans.names) == ([], [])
    clock.move(MINUTE + SECOND)
    loans.went(loans.spare(loans.names), loans.names, [])
    assert loans.names == []
    assert loans.used_lately(("api", SLOTS)) == 0


def test_g8_nothing_is_borrowed_while_the_books_are_in_doubt() -> None:
    jobs = request("slot", ConcurrencyCheck("api", 10)), request("start", RateCheck("mail", 50, SECOND))
    state = GateState(now=NOW, starts={}, holders={}, spending={}, breakers={}, lends=True)
    for doubtful, borrowers in ((("api", SLOTS), {"start"}), (("mail", SECOND), {"slot"})):

        def lately(name: LoanKey, in_doubt: LoanKey = doubtful) -> int | None:
            return None if name == in_doubt else 0

        _, changes = gatekeeper(jobs, lately)(state)
        assert {job_id for job_id, _ in changes.borrowers} == borrowers


def test_g8_what_may_not_have_gone_back_is_said_after_a_minute() -> None:
    loans, clock = books()
    jobs = [request(f"job {number}", ConcurrencyCheck("api", 10)) for number in range(2)]
    loans.add([Loan("api", SLOTS, 2)], jobs)
    loans.ended((JobId("job 1"), 1))
    loans.failed(loans.spare(API, all_free=True))
    assert loans.spare(API) == ([], [])
    clock.move(MINUTE + SECOND)
    assert loans.spare(API) == ([], [Loan("api", SLOTS, 1)])


def test_g8_what_was_lent_under_an_id_that_is_lost_is_forgotten() -> None:
    loans, _ = books()
    old, new = (request(name, ConcurrencyCheck("api", 10)) for name in ("old", "new"))
    loans.add([Loan("api", SLOTS, 1)], [old])
    loans.belong_to(WorkerId(2))
    assert loans.names == []
    loans.add([Loan("api", SLOTS, 1)], [new])
    assert loans.ended((JobId("old"), 1)) == []
    assert loans.passes([old]) == [False]


# Many workers


class Database:
    """What engines keep of gates, and how they load it."""

    def __init__(self) -> None:
        self.clock = ManualClock(NOW)
        self.holds = set[tuple[str, JobId]]()
        self.begun = dict[str, list[datetime]]()
        self.loans = dict[tuple[WorkerId, LoanKey], int]()
        self.dead = dict[WorkerId, datetime]()

    def state(self, requests: list[GateRequest]) -> GateState:
        now, lent, starts = self.clock.now(), dict[LoanKey, int](), dict[str, list[Start]]()
        holders = {key: 0 for key, _ in self.holds}
        for key, _ in self.holds:
            holders[key] += 1
        for (worker, (key, per)), number in self.loans.items():
            if not per:
                holders[key] = holders.get(key, 0) + number
            elif worker not in self.dead or self.dead[worker] + per > now:
                lent[key, per] = lent.get((key, per), 0) + number
        for check in (check for each in requests for check in each.rates):
            asking = sum(1 for each in requests if each.rates and each.rates[0].key == check.key)
            counted = [at for at in self.begun.get(check.key, []) if at > now - check.per]
            if len(counted) + lent.get((check.key, check.per), 0) >= check.limit // 2 - asking:
                starts[check.key] = [Start(check.key, at, NO_JOB, True) for at in counted]
        return GateState(now=now, starts=starts, holders=holders, spending={}, breakers={}, lent=lent, lends=True)

    def write(self, changes: GateChanges, worker: WorkerId) -> None:
        self.holds.update((key, job_id) for key, job_id, _ in changes.holds)
        for start in changes.starts:
            if start.begun:
                self.begun.setdefault(start.key, []).append(start.at)
        for loan in changes.loans:
            self.loans[worker, loan.name] = self.loans.get((worker, loan.name), 0) + loan.number

    def take(self, worker: WorkerId, spare: Spare) -> None:
        for loan in spare.back:
            self.loans[worker, loan.name] = self.loans.get((worker, loan.name), 0) - loan.number
        for loan in spare.left:
            self.loans[worker, loan.name] = min(self.loans.get((worker, loan.name), 0), loan.number)

    def recall(self) -> None:
        now = self.clock.now()
        for (worker, name), _ in list(self.loans.items()):
            if worker in self.dead and self.dead[worker] + name[1] <= now:
                del self.loans[worker, name]


class Crew:
    """A worker of the simulation: what it runs, and what it waits for an answer to."""

    def __init__(self, database: Database, number: int, begun: dict[str, list[datetime]]) -> None:
        self.database = database
        self.id = WorkerId(number)
        self.begun = begun
        self.loans = Loans(database.clock, lambda: True)
        self.loans.belong_to(self.id)
        self.running = list[GateRequest]()
        self.answers = list[tuple[list[GateRequest], GateChanges, list[bool]]]()
        self.late = list[Spare]()

    def ask(self, requests: list[GateRequest]) -> None:
        free = self.loans.passes(requests)
        self.begin([one for one, passes in zip(requests, free, strict=True) if passes])
        asking = [one for one, passes in zip(requests, free, strict=True) if not passes]
        if asking:
            held, changes = gatekeeper(asking, self.loans.used_lately)(self.database.state(asking))
            self.database.write(changes, self.id)
            for start in changes.starts:
                if start.begun:  # as of now, whenever its worker hears of it
                    self.begun.setdefault(start.key, []).append(start.at)
            self.answers.append((asking, changes, [each is None for each in held]))

    def answer(self, *, is_lost: bool) -> None:
        if not self.answers:
            return
        asked, changes, passed = self.answers.pop(0)
        if is_lost:
            self.loans.doubt(asked)
        else:
            borrowers = [one for one in asked if (one.claim.job_id, 1) in changes.borrowers]
            self.loans.add(changes.loans, borrowers)
            self.begin(borrowers)
            self.running += [one for one, ok in zip(asked, passed, strict=True) if ok and one not in borrowers]

    def act(self, deed: str, requests: list[GateRequest]) -> None:
        match deed:
            case "ask":
                self.ask(requests)
            case "answer" | "lose":
                self.answer(is_lost=deed == "lose")
            case "end":
                self.end(len(requests))
            case "look" | "look in vain":
                self.look(is_lost=deed == "look in vain")
            case _:
                self.write_late()

    def begin(self, requests: list[GateRequest]) -> None:
        self.running += requests
        for rate in (rate for one in requests for rate in one.rates):
            self.begun.setdefault(rate.key, []).append(self.database.clock.now())

    def end(self, at: int) -> None:
        if self.running:
            one = self.running.pop(at % len(self.running))
            self.database.holds -= {(check.key, one.claim.job_id) for check in one.concurrency}
            self.loans.ended((one.claim.job_id, 1))

    def look(self, *, all_free: bool = False, is_lost: bool = False) -> None:
        names = self.loans.names
        spare = self.loans.spare(names, all_free=all_free)
        if is_lost:
            self.loans.failed(spare)
            self.late.append(spare)
        else:
            self.database.take(self.id, spare)
            self.loans.went(spare, names, [])

    def write_late(self) -> None:
        while self.late:
            self.database.take(self.id, self.late.pop(0))

    def die(self) -> None:
        """Its leases are gone, and with them its holds and slots."""
        self.database.dead[self.id] = self.database.clock.now()
        self.database.holds -= {(check.key, one.claim.job_id) for one in self.running for check in one.concurrency}
        for (worker, name), _ in list(self.database.loans.items()):
            if worker == self.id and name[1] == SLOTS:
                del self.database.loans[worker, name]


def wait_for_all(crews: Sequence[Crew]) -> None:
    """What takes longer than a minute is not written any more."""
    for crew in crews:
        while crew.answers:
            crew.answer(is_lost=False)
        crew.write_late()


KINDS = (
    (ConcurrencyCheck("slots", 10),),
    (RateCheck("rate", 12, SECOND),),
    (ConcurrencyCheck("slots", 10), RateCheck("rate", 12, SECOND)),
    (RateCheck("wide", 100, 2 * SECOND), ConcurrencyCheck("few", 14)),
)
LIMITS = {"slots": 10, "few": 14}
RATES = {"rate": (12, SECOND), "wide": (100, 2 * SECOND)}
DEEDS = st.tuples(
    st.sampled_from(
        ["ask", "ask", "answer", "answer", "end", "end", "look", "move", "lose", "die", "look in vain", "late", "age"]
    ),
    st.integers(0, 2),
    st.integers(0, len(KINDS) - 1),
    st.integers(1, 9),
)


@settings(deadline=None, max_examples=300)
@given(st.lists(DEEDS, min_size=30, max_size=150))
def test_g8_no_limit_is_exceeded_by_workers_that_borrow_return_die_or_miss_messages(
    deeds: list[tuple[str, int, int, int]],
) -> None:
    database, begun = Database(), dict[str, list[datetime]]()
    crews = [Crew(database, number, begun) for number in range(3)]
    for at, (deed, who, kind, number) in enumerate(deeds):
        crew = crews[who]
        match deed:
            case "move":
                database.clock.move(timedelta(milliseconds=150 * number))
                database.recall()
            case "age":
                wait_for_all(crews)
                database.clock.move(MINUTE + SECOND)
            case "die":
                crew.die()
                crews[who] = Crew(database, crew.id + 3, begun)
            case _:
                crew.act(deed, [request(f"job {at}.{each}", *KINDS[kind]) for each in range(number)])
        running = [check.key for each in crews for one in each.running for check in one.concurrency]
        assert all(running.count(key) <= limit for key, limit in LIMITS.items())
    for key, (limit, per) in RATES.items():
        times = sorted(begun.get(key, []))
        assert all(later - first >= per for first, later in zip(times, times[limit:], strict=False))
    wait_for_all(crews)
    database.clock.move(MINUTE + SECOND)
    for crew in crews:
        while crew.running:
            crew.end(0)
        crew.look(all_free=True)
    database.recall()
    assert not any(database.loans.values())
