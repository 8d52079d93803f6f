"""How jobs of one kind ask before they run: from declared gates and the arguments of a job to gate requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from operator import itemgetter
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from perdure.domain.gate import BudgetCheck, ConcurrencyCheck, GateRequest, RateCheck
from perdure.domain.jobs.job import Claim
from perdure.policy.keys.grouping import KeyFunction, as_json, call_with_arguments
from perdure.policy.limits.gate_record import named
from perdure.policy.limits.gates import Breaker, Budget, Concurrency, Gate, Rate

KEY_LIMIT_CHARACTERS: Final = 200

_Keyed = TypeVar("_Keyed", Rate, Concurrency)
_Checks = tuple[tuple[RateCheck, ...], tuple[ConcurrencyCheck, ...], str]  # and their names, for the record
_PLAIN: Final = frozenset({int, str})  # 1 is equal to True and to 1.0, which are other keys
_ARGUMENT_VALUES_REMEMBERED: Final = 10_000


class GatePlan:
    """How jobs of one kind ask before they run. Parts that do not depend on their arguments are made once.

    `parameters` are those of the handler; the arguments of a job are in their order. `borrows`: the worker may keep
    what they get for its next job. `of_step`: the gates stand before a step, and passing those of the job does not pass
    them.
    """

    def __init__(
        self,
        kind_name: str,
        gates: Sequence[Gate],
        breaker: Breaker | None,
        parameters: Sequence[str] = (),
        *,
        borrows: bool = True,
        of_step: bool = False,
    ) -> None:
        self._borrows = borrows
        self._of_step = of_step
        self._parameters = tuple(parameters)
        self._rates = _named(kind_name, [gate for gate in gates if isinstance(gate, Rate)])
        self._slots = _named(kind_name, [gate for gate in gates if isinstance(gate, Concurrency)])
        self._budgets = [gate for gate in gates if isinstance(gate, Budget)]
        has_estimates = any(callable(budget.estimate) for budget in self._budgets)
        self._budget_checks = None if has_estimates else self._new_budget_checks(())
        self._breaker = None if breaker is None else breaker.asked
        self._is_plain = breaker is None and not self._budgets
        keys = [gate.key for gate in gates if not isinstance(gate, Budget) and gate.key is not None]
        self.needs_arguments = bool(keys) or has_estimates
        """Whether a job's arguments decide which gates it passes, or how much it takes."""
        self._pick = self._picker(keys)
        self._met: dict[Any, _Checks] = {}

    def request(self, claim: Claim, arguments: Sequence[Any] = ()) -> GateRequest:
        """The request of a claim; its arguments are decoded only if needed.

        An attempt that has passed before needs only a slot and a breaker that is not open, and reserves its estimates.
        """
        rates, slots, names = self._checks(arguments)
        budgets = self._new_budget_checks(arguments) if self._budget_checks is None else self._budget_checks
        if claim.gates_passed is not None and claim.has_passed and not self._of_step:
            rates = tuple(check for check, (gate, _) in zip(rates, self._rates, strict=True) if gate.counts == "runs")
            budgets = tuple(
                check if gate.counts == "runs" else replace(check, refuses=False)
                for check, gate in zip(budgets, self._budgets, strict=True)
                if check.estimate or gate.counts == "runs"
            )
            names = named(rates, slots, budgets, self._breaker)
        elif not self._is_plain:
            names = named(rates, slots, budgets, self._breaker)
        return GateRequest(
            claim=claim,
            rates=rates,
            concurrency=slots,
            budgets=budgets,
            breaker=self._breaker,
            borrows=self._borrows,
            named=names,
        )

    def _picker(self, keys: Sequence[tuple[str, ...] | KeyFunction]) -> Callable[[Sequence[Any]], Any] | None:
        """How the values of a key are found among the arguments; None: a function may use any of them."""
        names: list[str] = []
        for key in keys:
            if not isinstance(key, tuple):
                return None
            names += key
        return itemgetter(*map(self._parameters.index, names)) if names else _no_values

    def _checks(self, arguments: Sequence[Any]) -> _Checks:
        """The checks for these arguments, cached for repeated ones; only plain values are sure to be equal."""
        if self._pick is None:
            return self._new_checks(arguments)
        values = self._pick(arguments)
        is_plain = _PLAIN.issuperset(map(type, values)) if type(values) is tuple else type(values) in _PLAIN
        if not is_plain:
            return self._new_checks(arguments)
        checks = self._met.get(values)
        if checks is None:
            checks = self._new_checks(arguments)
            if len(self._met) >= _ARGUMENT_VALUES_REMEMBERED:
                self._met.clear()
            self._met[values] = checks
        return checks

    def _new_checks(self, values: Sequence[Any]) -> _Checks:
        arguments = dict(zip(self._parameters, values, strict=False))
        rates = [RateCheck(_key("rate.key", name, gate.key, arguments), *gate.limit) for gate, name in self._rates]
        slots = [
            ConcurrencyCheck(_key("concurrency.key", name, gate.key, arguments), gate.n) for gate, name in self._slots
        ]
        return tuple(rates), tuple(slots), named(rates, slots)

    def _new_budget_checks(self, values: Sequence[Any]) -> tuple[BudgetCheck, ...]:
        arguments = dict(zip(self._parameters, values, strict=False))
        return tuple(
            BudgetCheck(each.name, each.estimate_for(arguments), each.limits, fails=each.when_spent == "fail")
            for each in self._budgets
        )


def _no_values(_: Sequence[Any]) -> tuple[()]:
    return ()


def _named(kind_name: str, gates: Sequence[_Keyed]) -> list[tuple[_Keyed, str]]:
    """Gates with their names. Gates of one kind that use different arguments are different gates."""
    keys = list({gate.key: None for gate in gates if gate.name is None and gate.key is not None})
    if len(keys) <= 1:
        return [(gate, gate.name or kind_name) for gate in gates]
    by = {key: "+".join(key) if isinstance(key, tuple) else f"key {number}" for number, key in enumerate(keys, 1)}
    own = {key: f"{kind_name} by {which}" for key, which in by.items()}
    return [(gate, gate.name or (own[gate.key] if gate.key is not None else kind_name)) for gate in gates]


def _key(setting: str, name: str, key: tuple[str, ...] | KeyFunction | None, arguments: Mapping[str, Any]) -> str:
    # A colon in a name is doubled, so that no name looks like another one with a value.
    realm = name.replace(":", "::") if ":" in name else name
    whole = realm if key is None else f"{realm}:{_value(setting, name, key, arguments)}"
    if len(whole) <= KEY_LIMIT_CHARACTERS:
        return whole
    digest = sha256(whole.encode()).hexdigest()
    return f"{whole[: KEY_LIMIT_CHARACTERS - len(digest) - 1]}:{digest}"


def _value(setting: str, name: str, key: tuple[str, ...] | KeyFunction, arguments: Mapping[str, Any]) -> str:
    """The key's values as JSON, so that 7 and "7" are two keys and every character is valid."""
    whose = f"{setting} of gate {name}"
    values = (
        [arguments[part] for part in key] if isinstance(key, tuple) else [call_with_arguments(whose, key, arguments)]
    )
    return as_json(whose, values).decode()[1:-1]
