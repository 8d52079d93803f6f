"""Checks of the gates that a kind or a step declares."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta

from perdure.errors import SettingsError
from perdure.policy.limits.gates import Breaker, Budget, Concurrency, Gate, Rate

_Shared = tuple[type[Rate] | type[Concurrency], str, int]
_Limit = tuple[int, timedelta | None]


def check_gates(gates: Sequence[Gate], breaker: Breaker | None, parameters: Iterable[str]) -> None:
    """Refuse invalid gates when a kind is declared: values that are no gates, unknown keys, a budget named twice."""
    known = tuple(parameters)
    budgets = set[str]()
    for gate in gates:
        match gate:
            case Rate() | Concurrency():
                gate.check(known)
            case Budget():
                if gate.name in budgets:
                    raise SettingsError("budget.name", f"{gate.name} is given twice: join their limits in one Budget")
                budgets.add(gate.name)
            case Breaker():
                raise SettingsError("gates", f'cannot hold a breaker: write breaker=Breaker("{gate.name}") beside them')
            case _:
                raise SettingsError("gates", f"must be of Rate, Concurrency and Budget, got {gate!r}")
    if breaker is not None and not isinstance(breaker, Breaker):
        raise SettingsError("breaker", f'must be a Breaker, such as Breaker("digicert"), got {breaker!r}')


def check_step_gates(step: str, gates: object, breaker: Breaker | None, parameters: Iterable[str]) -> None:
    """Refuse invalid gates of a step: values that are no gates, an unknown key, and a Concurrency."""
    if not isinstance(gates, Sequence) or isinstance(gates, str | bytes):
        raise SettingsError(f"gates of step {step!r}", f"must be a list of Rate and Budget, got {gates!r}")
    if any(isinstance(gate, Concurrency) for gate in gates):
        problem = (
            "cannot hold a Concurrency, because a slot lasts as long as the whole run: make the step a job of its own"
            " with gates=[Concurrency(…)], and wait for it with ctx.gather"
        )
        raise SettingsError(f"gates of step {step!r}", problem)
    check_gates(gates, breaker, parameters)


def are_disputed(kind_name: str, gates: Sequence[Gate], others: Iterable[tuple[str, Sequence[Gate]]]) -> bool:
    """Whether another kind of job has declared one of these gates with another limit."""
    limits: dict[_Shared, set[_Limit]] = {}
    for shared, limit in _shared(kind_name, gates):
        limits.setdefault(shared, set()).add(limit)
    return any(
        limits.get(shared, {limit}) != {limit}
        for other, declared in others
        if other != kind_name
        for shared, limit in _shared(other, declared)
    )


def _shared(kind_name: str, gates: Sequence[Gate]) -> Iterator[tuple[_Shared, _Limit]]:
    """The limits of these gates, each under the name by which kinds share it."""
    for gate in gates:
        if isinstance(gate, Budget):
            continue
        values = 0 if gate.key is None else len(gate.key) if isinstance(gate.key, tuple) else 1
        yield (type(gate), gate.name or kind_name, values), gate.limit if isinstance(gate, Rate) else (gate.n, None)
