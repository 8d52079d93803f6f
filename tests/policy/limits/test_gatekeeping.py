"""Who may run now, and who must wait for what; rates hold on a fleet that is late, loses jobs and retries."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from perdure.domain.gate import (
    OLDEST_SPENDS_SEEN,
    BreakerCheck,
    BreakerState,
    BreakerView,
    BudgetCheck,
    ConcurrencyCheck,
    GateChanges,
    GateRequest,
    GateState,
    Held,
    NearLimit,
    RateCheck,
    Spend,
    Spending,
    Start,
)
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim
from perdure.policy.limits.gatekeeping import gatekeeper

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
DIGICERT = BreakerCheck("digicert", 5, MINUTE, MINUTE, 1)


def claim(job: str, token: int = 1) -> Claim:
    return Claim(JobId(job), token, "send", "default", "{}", 0, 0, 3, NOW, NOW)


def rated(job: str, *rates: RateCheck) -> GateRequest:
    return GateRequest(claim=claim(job), rates=rates)


def spent(amount: float, ago: timedelta, job: str = "other", *, is_estimate: bool = False) -> Spend:
    return Spend("openai", NOW - ago, amount, JobId(job), is_estimate)


class Fleet:
    """A store that loads exactly what `GateState` promises, and no more, and writes what `GateChanges` says."""

    def __init__(self) -> None:
        self.now = NOW
        self.starts = list[Start]()
        self.holders = Counter[str]()
        self.spends = list[Spend]()
        self.running = set[JobId]()
        self.breakers = dict[str, BreakerView]()
        self.changes = GateChanges()

    def ask(self, *requests: GateRequest) -> list[Held | None]:
        answers, self.changes = gatekeeper(requests)(self.state(requests))
        for start in self.changes.starts:
            own = (start.key, start.job_id, False)
            self.starts = [kept for kept in self.starts if (kept.key, kept.job_id, kept.begun) != own]
            self.starts.append(start)
        self.holders.update(key for key, _, _ in self.changes.holds)
        for spend in self.changes.spends:
            mine = (spend.name, spend.job_id, True)
            self.spends = [kept for kept in self.spends if (kept.name, kept.job_id, kept.is_estimate) != mine]
            self.spends.append(spend)
        self.breakers.update({view.name: view for view in self.changes.breakers})
        return answers

    def state(self, requests: Sequence[GateRequest]) -> GateState:
        asked = [check for request in requests for check in request.rates]
        jobs = {request.claim.job_id for request in requests}
        return GateState(
            now=self.now,
            starts={key: self.line(key, asked, jobs) for key in {check.key for check in asked}},
            holders=self.holders,
            spending={
                name: self.spending(name, requests)
                for name in {check.name for request in requests for check in request.budgets}
            },
            breakers=self.breakers,
        )

    def spending(self, name: str, requests: Sequence[GateRequest]) -> Spending:
        checks = [check for request in requests for check in request.budgets if check.name == name]
        known = sorted((spend for spend in self.spends if spend.name == name), key=lambda spend: spend.at)
        asking = {request.claim.job_id for request in requests}
        estimates = [spend for spend in known if spend.is_estimate and spend.job_id in asking]
        totals, oldest = dict[timedelta, float](), dict[timedelta, list[Spend]]()
        for window in {window for check in checks for window, _ in check.limits}:
            within = [spend for spend in known if spend.at > self.now - window]
            totals[window] = sum(spend.amount for spend in within)
            oldest[window] = within[:OLDEST_SPENDS_SEEN]
        running = [spend for spend in known if spend.is_estimate and spend.job_id in self.running - asking]
        return Spending(
            totals=totals, estimates=estimates, oldest=oldest, under_way=sum(spend.amount for spend in running)
        )

    def line(self, key: str, asked: list[RateCheck], jobs: set[JobId]) -> list[Start]:
        checks = [check for check in asked if check.key == key]
        per, latest = max(check.per for check in checks), max(check.limit for check in checks) + len(checks)
        known = sorted((start for start in self.starts if start.key == key), key=lambda start: start.at, reverse=True)
        return [
            start
            for rank, start in enumerate(known)
            if rank < latest or self.now - per < start.at < self.now + per or (start.job_id in jobs and not start.begun)
        ]

    def begun(self, key: str) -> list[datetime]:
        return sorted(start.at for start in self.starts if start.key == key and start.begun)


class Plan(Struct, frozen=True):
    """What a job of the simulation does: when it first comes, how late it comes back, whether it comes back at all."""

    arrives: int
    late: tuple[int, ...]
    lost: bool
    runs: int
    rates: tuple[RateCheck, ...]


class Ran(Struct, frozen=True):
    fleet: Fleet
    looks: list[list[int]]  # for each job, how often each of its runs was looked at
    order: list[int]  # jobs as they began


def run(plans: Sequence[Plan], batch: int = 1, most: int = 500) -> Ran:
    """Let all jobs come, wait as they are told, come back late or not at all, and run as often as they are meant to."""
    fleet, order, looks = Fleet(), list[int](), [[0] for _ in plans]
    due = [(plan.arrives, number) for number, plan in enumerate(plans)]
    heapq.heapify(due)
    clock = 0
    for _ in range(most * max(len(plans), 1)):
        if not due:
            return Ran(fleet, looks, order)
        clock = max(clock, due[0][0])
        taken = list[int]()
        while due and due[0][0] <= clock and len(taken) < batch:
            taken.append(heapq.heappop(due)[1])
        fleet.now = NOW + clock * timedelta(milliseconds=1)
        answers = fleet.ask(*(rated(f"job {number}", *plans[number].rates) for number in taken))
        for number, held in zip(taken, answers, strict=True):
            plan, seen = plans[number], looks[number]
            seen[-1] += 1
            if held is None:
                order.append(number)
                if len(seen) < plan.runs:
                    seen.append(0)
                    heapq.heappush(due, (clock, number))
            elif not plan.lost:
                assert held.wait > timedelta(0)
                late = plan.late[(sum(seen) - 1) % len(plan.late)]
                heapq.heappush(due, (clock + -(-held.wait // timedelta(milliseconds=1)) + late, number))
    raise AssertionError("a job that asks again and again never starts")


def exact(fleet: Fleet, rates: Sequence[RateCheck]) -> bool:
    for rate in rates:
        begun = fleet.begun(rate.key)
        if any(later - first < rate.per for first, later in zip(begun, begun[rate.limit :], strict=False)):
            return False
    return True


SPANS = st.integers(1, 300).map(lambda length: timedelta(milliseconds=length))


@st.composite
def plans(draw: st.DrawFn) -> tuple[list[RateCheck], list[Plan]]:
    """Jobs under one to three keys, each key with one rate or two; a job that names a key asks for all its rates."""
    gates = [
        tuple(draw(st.lists(st.builds(RateCheck, st.just(key), st.integers(1, 4), SPANS), min_size=1, max_size=2)))
        for key in draw(st.sampled_from(["a", "ab", "abc"]))
    ]
    jobs = st.builds(
        Plan,
        arrives=st.integers(0, 500),
        late=st.lists(st.sampled_from([0, 0, 1, 7, 150, 900]), min_size=1, max_size=4).map(tuple),
        lost=st.sampled_from([False, False, False, True]),
        runs=st.integers(1, 3),
        rates=st.lists(st.sampled_from(gates), min_size=1, max_size=3, unique=True).map(lambda few: sum(few, ())),
    )
    return list(sum(gates, ())), draw(st.lists(jobs, max_size=25))


@settings(deadline=None)
@given(plans(), st.integers(1, 5))
def test_g8_no_rate_is_ever_exceeded_and_a_job_that_asks_again_starts(
    made: tuple[list[RateCheck], list[Plan]], batch: int
) -> None:
    """Late and lost jobs, retries at once, several rates and keys, batches; each is looked at a few times only."""
    rates, jobs = made
    ran = run(jobs, batch)
    assert exact(ran.fleet, rates)
    began = Counter(ran.order)
    assert all(began[number] == plan.runs for number, plan in enumerate(jobs) if not plan.lost)
    assert max((looks for seen in ran.looks for looks in seen), default=0) <= 12


@given(st.integers(1, 4), SPANS, st.lists(st.integers(0, 400), max_size=30), st.integers(1, 5))
def test_g8_those_who_are_punctual_begin_in_the_order_in_which_they_came_and_wait_once(
    limit: int, per: timedelta, arrivals: list[int], batch: int
) -> None:
    rate = RateCheck("a", limit, per)
    jobs = [Plan(arrives, (0,), lost=False, runs=1, rates=(rate,)) for arrives in sorted(arrivals)]
    ran = run(jobs, batch)
    assert exact(ran.fleet, [rate])
    assert ran.order == sorted(ran.order)
    assert all(seen[0] <= 2 for seen in ran.looks)


def test_g8_a_backlog_is_drained_at_nearly_the_full_rate_if_each_job_is_a_little_late() -> None:
    rate = RateCheck("a", 10, MINUTE)
    ran = run([Plan(0, (5, 90, 20, 170), lost=False, runs=1, rates=(rate,)) for _ in range(200)], batch=10)
    assert exact(ran.fleet, [rate])
    assert ran.fleet.begun("a")[-1] - NOW < 19 * MINUTE * 1.02
    assert max(seen[0] for seen in ran.looks) <= 4


def test_g8_after_an_outage_jobs_start_at_the_rate() -> None:
    """All 300 places have passed when the fleet comes back: each waits once more, for one second after the other."""
    rate = RateCheck("a", 1, SECOND)
    ran = run(
        [Plan(0, (3_600_000 - n * 1000, 0, 0, 0), lost=False, runs=1, rates=(rate,)) for n in range(300)], batch=50
    )
    begun = ran.fleet.begun("a")
    assert begun[-1] - NOW == HOUR + 298 * SECOND
    assert exact(ran.fleet, [rate])
    assert max(seen[0] for seen in ran.looks) == 3


def test_g8_a_long_line_of_places_does_not_hide_the_starts_that_count() -> None:
    fleet, rate = Fleet(), RateCheck("a", 2, MINUTE)
    fleet.ask(*(rated(f"job {n:03}", rate) for n in range(100)))
    fleet.now += MINUTE / 2
    assert fleet.ask(rated("job 099", rate))[0] is not None
    assert len(fleet.begun("a")) == 2


def test_c11_who_comes_too_early_keeps_the_place_in_the_middle_of_the_line() -> None:
    fleet, rate = Fleet(), RateCheck("a", 1, MINUTE)
    fleet.ask(*(rated(f"job {n:03}", rate) for n in range(100)))
    fleet.now += MINUTE / 2
    assert [held and held.wait for held in fleet.ask(rated("job 050", rate))] == [49.5 * MINUTE]
    assert fleet.changes == GateChanges()


def test_c11_who_finds_no_room_because_another_was_late_waits_for_the_next_gap_not_for_the_end() -> None:
    fleet, rate = Fleet(), RateCheck("a", 1, MINUTE)
    fleet.ask(*(rated(f"job {n:03}", rate) for n in range(100)))
    fleet.now = NOW + MINUTE + SECOND
    assert fleet.ask(rated("job 001", rate)) == [None]
    fleet.now = NOW + 2 * MINUTE
    assert [held and held.wait for held in fleet.ask(rated("job 002", rate))] == [SECOND]


def test_c11_of_several_rates_the_farthest_turn_is_the_answer_and_each_gives_a_place() -> None:
    slow, fast = RateCheck("slow", 1, HOUR), RateCheck("fast", 1, MINUTE)
    for order in ((slow, fast), (fast, slow)):
        fleet = Fleet()
        fleet.ask(rated("a", *order))
        held = fleet.ask(rated("b", *order))[0]
        assert held is not None
        assert held.wait == HOUR
        assert {(start.key, start.at - NOW) for start in fleet.changes.starts} == {("slow", HOUR), ("fast", MINUTE)}


def test_c11_a_place_is_kept_and_reported() -> None:
    fleet, rate = Fleet(), RateCheck("mail", 1, MINUTE)
    first, second, third = fleet.ask(rated("a", rate), rated("b", rate), rated("c", rate))
    assert first is None
    note = "mail: 1 of 1 starts in 1m; its turn is at 2026-01-01T00:01:00+00:00"
    assert second == Held("rate limited", note, MINUTE, key="mail")
    assert third is not None
    assert third.wait == 2 * MINUTE
    assert fleet.changes.starts == (
        Start("mail", NOW, JobId("a"), begun=True),
        Start("mail", NOW + MINUTE, JobId("b"), begun=False),
        Start("mail", NOW + 2 * MINUTE, JobId("c"), begun=False),
    )
    fleet.now += MINUTE / 2
    assert [held and held.wait for held in fleet.ask(rated("c", rate))] == [MINUTE * 1.5]
    assert fleet.changes == GateChanges()


def test_g8_each_attempt_counts_so_a_job_that_is_retried_at_once_waits_too() -> None:
    fleet, rate = Fleet(), RateCheck("a", 2, MINUTE)
    assert fleet.ask(rated("a", rate)) == [None]
    assert fleet.ask(rated("a", rate)) == [None]
    held = fleet.ask(rated("a", rate))[0]
    assert held is not None
    assert held.wait == MINUTE


def test_g8_a_place_whose_job_never_comes_blocks_others_for_per_at_most() -> None:
    fleet, rate = Fleet(), RateCheck("a", 1, MINUTE)
    fleet.ask(rated("a", rate), rated("lost", rate))
    fleet.now += 2 * MINUTE
    assert fleet.ask(rated("c", rate)) == [None]


def test_e8_six_a_minute_and_25_000_a_day_share_their_starts() -> None:
    fleet = Fleet()
    quota = (RateCheck("pagespeed", 6, MINUTE), RateCheck("pagespeed", 25, DAY))
    answers = fleet.ask(*(rated(f"job {n:02}", *quota) for n in range(30)))
    waits = [held.wait if held else timedelta(0) for held in answers]
    assert waits == [timedelta(0)] * 6 + [MINUTE] * 6 + [2 * MINUTE] * 6 + [3 * MINUTE] * 6 + [4 * MINUTE] + [DAY] * 5
    assert len(fleet.changes.starts) == 30


def test_e8_a_rate_warns_once_on_its_way_up_at_four_fifths() -> None:
    fleet, rate = Fleet(), RateCheck("pagespeed", 6, MINUTE)
    told = list[NearLimit]()
    for n in range(8):
        fleet.ask(rated(f"job {n}", rate))
        told.extend(fleet.changes.warnings)
    assert told == [NearLimit("pagespeed", 5, 6, MINUTE)]


def budgeted(job: str, estimate: float = 1, *limits: tuple[timedelta, float]) -> GateRequest:
    return GateRequest(claim=claim(job), budgets=(BudgetCheck("openai", estimate, limits or ((DAY, 10.0),)),))


def test_c11_a_budget_holds_a_job_exactly_until_enough_of_the_oldest_has_left_the_window() -> None:
    fleet = Fleet()
    fleet.spends = [spent(2, DAY), spent(2, DAY - 10 * MINUTE), spent(3, DAY - 20 * MINUTE), spent(5, HOUR)]
    held = fleet.ask(budgeted("a", 3))[0]
    note = "openai: 10 of 10 spent in 1d, estimate 3; enough is free at 2026-01-01T00:20:00+00:00"
    assert held == Held("budget exceeded", note, 20 * MINUTE, key="openai")
    assert fleet.changes == GateChanges()
    fleet.now += 20 * MINUTE
    assert fleet.ask(budgeted("a", 3)) == [None]


@pytest.mark.parametrize(("ago", "wait"), [(timedelta(0), HOUR), (DAY - timedelta(milliseconds=1), SECOND)])
def test_c11_a_budget_is_looked_at_again_after_a_second_at_least_and_an_hour_at_most(
    ago: timedelta, wait: timedelta
) -> None:
    fleet = Fleet()
    fleet.spends = [spent(10, ago)]
    assert [held and held.wait for held in fleet.ask(budgeted("a"))] == [wait]


def test_c11_of_several_windows_the_one_that_waits_longest_decides() -> None:
    fleet = Fleet()
    fleet.spends = [spent(5, 7 * DAY - 30 * MINUTE), spent(5, DAY - 10 * MINUTE)]
    held = fleet.ask(budgeted("a", 1, (DAY, 5.0), (7 * DAY, 10.0)))[0]
    assert held is not None
    assert (held.wait, held.note.split(",")[0]) == (30 * MINUTE, "openai: 10 of 10 spent in 7d")


def test_c11_jobs_that_start_together_cannot_spend_the_same_money() -> None:
    fleet = Fleet()
    answers = fleet.ask(*(budgeted(f"job {n}", 4) for n in range(4)))
    assert [held is None for held in answers] == [True, True, False, False]
    assert fleet.changes.spends == tuple(Spend("openai", NOW, 4, JobId(f"job {n}"), is_estimate=True) for n in range(2))


def test_c11_a_job_that_comes_again_replaces_its_own_estimate() -> None:
    fleet = Fleet()
    assert [fleet.ask(budgeted("a", 8)) for _ in range(3)] == [[None]] * 3
    assert sum(spend.amount for spend in fleet.spends) == 8
    assert fleet.ask(budgeted("b", 3))[0] is not None
    assert fleet.ask(budgeted("c", 2)) == [None]


def test_c11_a_job_waits_for_what_others_have_spent_not_for_its_own_estimate() -> None:
    fleet = Fleet()
    fleet.spends = [spent(8, DAY - 20 * MINUTE, "a", is_estimate=True), spent(5, DAY - 40 * MINUTE)]
    assert [held and held.wait for held in fleet.ask(budgeted("a", 8))] == [40 * MINUTE]


def test_c11_an_estimate_that_was_replaced_frees_nothing_any_more() -> None:
    fleet = Fleet()
    fleet.spends = [spent(8, DAY - 10 * MINUTE, "a", is_estimate=True)]
    first, second = fleet.ask(budgeted("a", 8), budgeted("b", 3))
    assert (first, second and second.note.split("; ")[1]) == (None, "enough is free at 2026-01-02T00:00:00+00:00")


def test_c11_a_job_looks_again_soon_while_others_may_spend_less_than_was_estimated() -> None:
    fleet = Fleet()
    fleet.spends = [spent(8, MINUTE, "a", is_estimate=True)]
    fleet.running = {JobId("a")}
    [held] = fleet.ask(budgeted("b", 3))
    assert held is not None
    assert 24 * SECOND <= held.wait <= 36 * SECOND
    assert held.note.startswith("openai: 8 of 10 spent in 1d, 8 of it by estimates of running jobs, estimate 3; ")
    fleet.spends = [spent(2, MINUTE, "a")]
    assert fleet.ask(budgeted("b", 3)) == [None]


def test_c11_of_a_long_list_of_spends_the_end_is_only_guessed() -> None:
    """Only so many are looked at; waiting jobs look again every hour anyway."""
    fleet = Fleet()
    fleet.spends = [spent(0.01, DAY - n * SECOND) for n in range(1, 2_001)]
    sure, unsure = (fleet.ask(budgeted("a", 1, (DAY, limit)))[0] for limit in (20.0, 5.0))
    assert sure is not None
    assert (sure.wait, sure.note.split("; ")[1]) == (100 * SECOND, "enough is free at 2026-01-01T00:01:40+00:00")
    assert unsure is not None
    told = "enough is free some time after 2026-01-01T00:16:40+00:00"
    assert (unsure.wait, unsure.note.split("; ")[1]) == (1_000 * SECOND, told)


def test_c11_jobs_that_start_now_may_spend_less_too() -> None:
    fleet = Fleet()
    _, held = fleet.ask(budgeted("a", 8), budgeted("b", 3))
    assert held is not None
    assert held.wait <= 36 * SECOND


def test_c11_estimates_of_jobs_that_have_ended_are_as_good_as_spent() -> None:
    fleet = Fleet()
    fleet.spends = [spent(8, MINUTE, "a", is_estimate=True)]
    assert [held and held.wait for held in fleet.ask(budgeted("b", 3))] == [HOUR]
    fleet.spends.append(spent(9, MINUTE))
    fleet.running = {JobId("a")}
    assert [held and held.wait for held in fleet.ask(budgeted("b", 3))] == [HOUR]


def test_c11_an_own_estimate_that_has_left_a_window_is_not_taken_off_it() -> None:
    fleet = Fleet()
    fleet.spends = [spent(8, 2 * DAY, "a", is_estimate=True), spent(5, HOUR)]
    assert fleet.ask(budgeted("a", 8, (DAY, 10.0), (7 * DAY, 100.0)))[0] is not None


def test_c11_ten_times_a_tenth_is_no_more_than_one() -> None:
    fleet = Fleet()
    answers = fleet.ask(*(budgeted(f"job {n}", 0.1, (DAY, 1.0)) for n in range(11)))
    assert [held is None for held in answers] == [True] * 10 + [False]
    assert [round(near.used, 6) for near in fleet.changes.warnings] == [0.8]


def test_c11_what_costs_nothing_is_held_only_once_the_limit_is_passed() -> None:
    fleet = Fleet()
    fleet.spends = [spent(10, HOUR)]
    assert fleet.ask(budgeted("a", 0)) == [None]
    assert not fleet.changes.spends
    fleet.spends = [spent(10.5, HOUR)]
    assert fleet.ask(budgeted("a", 0))[0] is not None


def test_e8_a_budget_warns_once_on_its_way_up_at_four_fifths() -> None:
    fleet = Fleet()
    fleet.spends = [spent(7, HOUR)]
    fleet.ask(budgeted("a"), budgeted("b"))
    assert fleet.changes.warnings == (NearLimit("openai", 8, 10, DAY),)
    fleet.ask(budgeted("a"))
    assert not fleet.changes.warnings


def slotted(job: str, *slots: tuple[str, int]) -> GateRequest:
    return GateRequest(claim=claim(job, 7), concurrency=tuple(ConcurrencyCheck(*slot) for slot in slots))


def test_g8_never_more_than_n_hold_a_key() -> None:
    fleet = Fleet()
    fleet.holders["acme"] = 1
    answers = fleet.ask(*(slotted(f"job {n}", ("acme", 3)) for n in range(4)))
    assert [held is None for held in answers] == [True, True, False, False]
    assert fleet.changes.holds == (("acme", JobId("job 0"), 7), ("acme", JobId("job 1"), 7))
    assert fleet.changes.waiting == (("acme", JobId("job 2")), ("acme", JobId("job 3")))
    held = answers[2]
    assert held is not None
    assert held.reason == "concurrency limit reached"
    assert held.note.startswith("acme: 3 of 3 taken; looks again by 2026-01-01T00:00:")


def test_c11_jobs_without_a_slot_look_again_apart_and_always_after_the_same_time() -> None:
    fleet = Fleet()
    fleet.holders["acme"] = 1
    requests = [slotted(f"job {n}", ("acme", 1)) for n in range(50)]
    waits = [held.wait for held in fleet.ask(*requests) if held]
    assert waits == [held.wait for held in fleet.ask(*requests) if held]
    assert len(set(waits)) == 50
    assert all(24 * SECOND <= wait <= 36 * SECOND for wait in waits)


def test_c11_of_two_slots_both_or_none_is_taken_and_a_key_named_twice_is_held_once() -> None:
    fleet = Fleet()
    fleet.holders["full"] = 1
    assert fleet.ask(slotted("a", ("free", 1), ("full", 1)))[0] is not None
    assert fleet.changes == GateChanges(waiting=(("full", JobId("a")),))
    assert fleet.ask(slotted("b", ("free", 1), ("free", 2))) == [None]
    assert fleet.changes.holds == (("free", JobId("b"), 7),)


def every_gate(job: str) -> GateRequest:
    return GateRequest(
        claim=claim(job),
        rates=(RateCheck("rate", 1, MINUTE),),
        concurrency=(ConcurrencyCheck("slots", 1),),
        budgets=(BudgetCheck("openai", 1, ((DAY, 1.0),)),),
        breaker=DIGICERT,
    )


def test_c11_the_gates_are_asked_in_order_breaker_rate_budget_concurrency() -> None:
    fleet = Fleet()
    fleet.breakers["digicert"] = BreakerView(name="digicert", state=BreakerState.OPEN, until=NOW + MINUTE)
    fleet.starts = [Start("rate", NOW, JobId("x"), begun=True)]
    fleet.spends = [spent(1, DAY - 2 * MINUTE)]
    fleet.holders["slots"] = 1
    reasons = list[str | None]()
    for _ in range(4):
        held = fleet.ask(every_gate("a"))[0]
        assert held is not None
        reasons.append(held.reason)
        fleet.now += MINUTE
    assert reasons == [
        "circuit breaker open",
        "budget exceeded",
        "concurrency limit reached",
        "concurrency limit reached",
    ]

    fleet.breakers.clear()
    fleet.starts = [Start("rate", fleet.now, JobId("x"), begun=True)]
    fleet.spends = [spent(1, timedelta(0))]
    held = fleet.ask(every_gate("a"))[0]
    assert held is not None
    assert held.reason == "rate limited"


def test_c11_what_is_held_by_one_gate_consumes_nothing_of_the_others() -> None:
    fleet = Fleet()
    fleet.holders["slots"] = 1
    assert fleet.ask(every_gate("a"), every_gate("b")) != [None, None]
    assert (fleet.changes.starts, fleet.changes.spends, fleet.changes.holds) == ((), (), ())
    assert fleet.changes.breakers == (BreakerView(name="digicert"),)  # met for the first time, and otherwise untouched
    fleet.holders.clear()
    assert fleet.ask(every_gate("a")) == [None]
    assert (len(fleet.changes.starts), len(fleet.changes.spends), len(fleet.changes.holds)) == (1, 1, 1)
    assert not fleet.changes.breakers


def test_c11_a_trial_that_another_gate_holds_leaves_the_trial_to_the_next() -> None:
    fleet = Fleet()
    fleet.breakers["digicert"] = BreakerView(name="digicert", state=BreakerState.OPEN, until=NOW)
    fleet.holders["slots"] = 1
    held, free = fleet.ask(every_gate("a"), GateRequest(claim=claim("b"), breaker=DIGICERT))
    assert held is not None
    assert free is None
    assert [view.trials for view in fleet.changes.breakers] == [(JobId("b"),)]


def test_f5_a_claim_that_is_lost_passes_nothing_and_changes_nothing() -> None:
    state = GateState(now=NOW, starts={}, holders={}, spending={}, breakers={}, lost=frozenset({(JobId("a"), 1)}))
    answers, changes = gatekeeper([every_gate("a")])(state)
    assert answers[0] is not None
    assert answers[0].reason == "claim lost"
    assert changes == GateChanges()


def test_a_job_without_gates_runs() -> None:
    fleet = Fleet()
    assert fleet.ask(GateRequest(claim=claim("a"))) == [None]
    assert fleet.changes == GateChanges()
