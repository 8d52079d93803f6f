"""What users declare to spare the outside world, and what a claim asks for by it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from perdure.domain.gate import BreakerCheck, BudgetCheck, ConcurrencyCheck, GateRequest, RateCheck
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim
from perdure.errors import PayloadError, SettingsError
from perdure.policy.limits.declared_gates import are_disputed, check_gates
from perdure.policy.limits.gate_plan import KEY_LIMIT_CHARACTERS, GatePlan
from perdure.policy.limits.gates import Breaker, Budget, Concurrency, Gate, Rate

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CLAIM = Claim(JobId("j"), 7, "audit", "default", "{}", 0, 0, 3, NOW, NOW)
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


def key(gate: Rate | Concurrency, kind: str = "audit", **arguments: Any) -> str:
    request = GatePlan(kind, [gate], None, tuple(arguments)).request(CLAIM, tuple(arguments.values()))
    checks: list[RateCheck | ConcurrencyCheck] = [*request.rates, *request.concurrency]
    return checks[0].key


def test_c11_a_claim_asks_for_all_that_its_kind_declares() -> None:
    gates: list[Gate] = [
        Rate(6, "1m"),
        Rate(100, "1h", key="host", name="web"),
        Concurrency(2, key=("host", "port")),
        Budget("openai", daily=5, monthly=50, estimate=0.2),
    ]
    breaker = Breaker("digicert", failures=3, window="30s", open_for="2m", half_open=2)
    plan = GatePlan("audit", gates, breaker, ("port", "host"))
    assert plan.request(CLAIM, (80, "a.example")) == GateRequest(
        claim=CLAIM,
        rates=(RateCheck("audit", 6, MINUTE), RateCheck('web:"a.example"', 100, timedelta(hours=1))),
        concurrency=(ConcurrencyCheck('audit:"a.example",80', 2),),
        budgets=(BudgetCheck("openai", 0.2, ((DAY, 5), (30 * DAY, 50))),),
        breaker=BreakerCheck("digicert", 3, timedelta(seconds=30), 2 * MINUTE, 2),
        named=r'["breaker","digicert"],["rate","audit"],["rate","web:\"a.example\""],["budget","openai",0,0.2],'
        r'["concurrency","audit:\"a.example\",80"]',
    )


def test_a_kind_without_gates_asks_for_nothing() -> None:
    assert GatePlan("audit", [], None).request(CLAIM) == GateRequest(claim=CLAIM)


def test_a_gate_is_of_its_kind_unless_it_is_named() -> None:
    assert key(Rate(1, "1s"), "a") != key(Rate(1, "1s"), "b")
    assert key(Rate(1, "1s", name="web"), "a") == key(Rate(1, "1s", name="web"), "b") == "web"


@pytest.mark.parametrize(
    ("own", "others", "expected"),
    [
        (Concurrency(10, name="web"), Concurrency(10, name="web"), False),
        (Concurrency(10, name="web"), Concurrency(20, name="web"), True),
        (Concurrency(10, name="web"), Concurrency(20, name="mail"), False),
        (Concurrency(10, name="web"), Concurrency(20, name="web", key="host"), False),
        (Concurrency(10, name="web", key="site"), Concurrency(20, name="web", key="host"), True),
        (Concurrency(10, name="web", key=str), Concurrency(20, name="web", key="host"), True),
        (Concurrency(10, name="web", key=("host", "port")), Concurrency(20, name="web", key="host"), False),
        (Concurrency(10, name="web"), Rate(20, "1s", name="web"), False),
        (Rate(10, "1s", name="web"), Rate(10, "1s", name="web"), False),
        (Rate(10, "1s", name="web"), Rate(10, "2s", name="web"), True),
        (Rate(10, "1s"), Rate(20, "1s"), False),
        (Rate(10, "1s"), Rate(20, "1s", name="audit"), True),
        (Budget("ai", daily=1), Budget("ai", daily=2), False),
    ],
)
def test_g8_gates_are_disputed_where_another_kind_has_declared_another_limit(
    own: Gate, others: Gate, expected: bool
) -> None:
    declared = [("audit", (own,)), ("check", (others,))]
    assert are_disputed("audit", [own], declared) is expected
    assert are_disputed("check", [others], declared) is expected


def test_g8_limits_of_one_kind_are_not_disputed() -> None:
    """A job that names one gate twice borrows nothing of it anyhow."""
    gates = [Concurrency(10, key="tenant"), Concurrency(20, key="user")]
    assert not are_disputed("audit", gates, [("audit", gates)])
    assert are_disputed("audit", gates, [("audit", gates), ("check", [Concurrency(10, key="host", name="audit")])])
    assert GatePlan("audit", [], None, borrows=False).request(CLAIM) == GateRequest(claim=CLAIM, borrows=False)


def test_a_key_may_be_a_function_of_the_arguments() -> None:
    gate = Concurrency(1, key=lambda arguments: arguments["email"].split("@")[1])
    assert key(gate, email="a@b.example") == 'audit:"b.example"'


def test_c11_gates_of_one_kind_that_go_by_different_arguments_count_apart() -> None:
    def second(arguments: Any) -> int:
        return int(arguments["user"])

    gates = [Concurrency(2, key="tenant"), Concurrency(5, key="user"), Concurrency(9), Concurrency(3, key=second)]
    keys = [
        check.key for check in GatePlan("audit", gates, None, ("tenant", "user")).request(CLAIM, (7, 7)).concurrency
    ]
    assert keys == ["audit by tenant:7", "audit by user:7", "audit", "audit by key 3:7"]


def test_gates_of_one_kind_that_go_by_the_same_argument_count_together() -> None:
    rates = [Rate(6, "1m", key="host"), Rate(25_000, "1d", key="host")]
    request = GatePlan("audit", rates, None, ("host",)).request(CLAIM, ("a",))
    assert [check.key for check in request.rates] == ['audit:"a"', 'audit:"a"']


class Site(BaseModel):
    host: str


def test_a_key_may_be_any_text_that_a_job_can_carry() -> None:
    gate = Rate(1, "1s", key="site")
    assert key(gate, site=Site(host="a")) == key(gate, site={"host": "a"}) == 'audit:{"host":"a"}'
    assert key(gate, site=None) == "audit:null"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", "7"), ("a", 7)),
        (("a:7", None), ("a", 7)),
        (("a:", 7), ("a", ":7")),
        (("k" * 99 + "1", "v" * 500), ("k" * 99 + "2", "v" * 500)),
        (("a", "v" * 500 + "1"), ("a", "v" * 500 + "2")),
    ],
)
def test_g8_two_keys_are_never_taken_for_one(one: tuple[str, Any], other: tuple[str, Any]) -> None:
    def made(name: str, value: Any) -> str:
        return key(Rate(1, "1s", name=name, key=None if value is None else "x"), x=value)

    assert made(*one) != made(*other)


@given(st.text(st.characters(codec="utf-8"), max_size=400))
def test_a_key_is_bounded_storable_and_the_same_every_time(value: str) -> None:
    made = key(Rate(1, "1s", key="x"), x=value)
    assert len(made) <= KEY_LIMIT_CHARACTERS
    assert "\x00" not in made
    assert made == key(Rate(1, "1s", key="x"), x=value)


def broken(arguments: Any) -> str:
    return str(arguments["tenant"])


@pytest.mark.parametrize(
    ("gate", "problem"),
    [
        (Rate(1, "1s", key=broken, name="web"), r"^rate\.key of gate web raised KeyError: 'tenant'$"),
        (Concurrency(1, key=broken), r"^concurrency\.key of gate audit raised KeyError: 'tenant'$"),
        (
            Rate(1, "1s", key=lambda _: object()),
            r"^rate\.key of gate audit returns a value that cannot be stored as JSON",
        ),
        (
            Rate(1, "1s", key=lambda _: "\ud800"),
            r"^rate\.key of gate audit returns a value that cannot be stored as JSON",
        ),
    ],
)
def test_a_key_that_cannot_be_computed_names_its_gate(gate: Rate | Concurrency, problem: str) -> None:
    with pytest.raises(PayloadError, match=problem):
        key(gate, host="a")


def test_an_unknown_argument_is_refused_when_the_job_is_declared() -> None:
    with pytest.raises(SettingsError, match=r"^rate\.key names tenat, .* are: tenant, url$"):
        check_gates([Rate(1, "1s", key="tenat")], None, ["tenant", "url"])
    with pytest.raises(SettingsError, match=r"^concurrency\.key names a, b, .* are: none$"):
        check_gates([Concurrency(1, key=("a", "b"))], None, [])
    check_gates([Rate(1, "1s", key="url"), Concurrency(1, key=broken), Budget("x", daily=1)], Breaker("x"), ["url"])


def test_a_breaker_among_the_gates_is_reported_where_it_belongs() -> None:
    with pytest.raises(SettingsError, match=r'write breaker=Breaker\("ca"\) beside them'):
        check_gates([Breaker("ca")], None, [])  # type: ignore[list-item] # what users write


@pytest.mark.parametrize(
    ("gates", "breaker", "field"),
    [
        (["6/m"], None, "gates"),
        ([Breaker("x")], None, "gates"),
        ([Budget("x", daily=1), Budget("x", weekly=1)], None, "budget.name"),
        ([], "digicert", "breaker"),
    ],
)
def test_what_is_no_gate_is_refused_when_the_job_is_declared(gates: list[Any], breaker: Any, field: str) -> None:
    with pytest.raises(SettingsError) as refused:
        check_gates(gates, breaker, [])
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (lambda: Rate(0, "1m"), "rate.n"),
        (lambda: Rate(True, "1m"), "rate.n"),
        (lambda: Rate(1.5, "1m"), "rate.n"),  # type: ignore[arg-type]
        (lambda: Rate(1, 0), "rate.per"),
        (lambda: Rate(1, "-1s"), "rate.per"),
        (lambda: Rate(1, "often"), "rate.per"),
        (lambda: Rate(1, "1s", key=7), "rate.key"),  # type: ignore[arg-type]
        (lambda: Rate(1, "1s", key=()), "rate.key"),
        (lambda: Rate(1, "1s", name=" "), "rate.name"),
        (lambda: Rate(1, "1s", name="n" * 101), "rate.name"),
        (lambda: Concurrency(0), "concurrency.n"),
        (lambda: Concurrency(1, key=("a", 7)), "concurrency.key"),  # type: ignore[arg-type]
        (lambda: Concurrency(1, name="a\nb"), "concurrency.name"),
        (lambda: Budget("openai"), "budget"),
        (lambda: Budget("", daily=1), "budget.name"),
        (lambda: Budget("openai", daily=0), "budget.daily"),
        (lambda: Budget("openai", weekly=-1), "budget.weekly"),
        (lambda: Budget("openai", monthly=float("nan")), "budget.monthly"),
        (lambda: Budget("openai", daily="5"), "budget.daily"),  # type: ignore[arg-type]
        (lambda: Budget("openai", daily=5, estimate=-0.1), "budget.estimate"),
        (lambda: Budget("openai", daily=5, weekly=1, estimate=2), "budget.estimate"),
        (lambda: Breaker(""), "breaker.name"),
        (lambda: Breaker("x", failures=0), "breaker.failures"),
        (lambda: Breaker("x", window=0), "breaker.window"),
        (lambda: Breaker("x", open_for="soon"), "breaker.open_for"),
        (lambda: Breaker("x", half_open=0), "breaker.half_open"),
    ],
)
def test_wrong_settings_are_refused_by_name(wrong: Callable[[], Any], field: str) -> None:
    with pytest.raises(SettingsError) as refused:
        wrong()
    assert refused.value.field == field


def test_gates_are_values() -> None:
    assert Rate(6, "1m", key="url") == Rate(6, 60, key=("url",))
    assert hash(Breaker("x", window="60s")) == hash(Breaker("x"))
    with pytest.raises(AttributeError):
        Rate(6, "1m").n = 7  # type: ignore[misc]
