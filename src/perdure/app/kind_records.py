"""What a kind declares for tools that do not have the app's code: checked before it is stored."""

from __future__ import annotations

from collections.abc import Mapping

from perdure.domain.declared_limits import BreakerLimit, BudgetLimit, DeclaredLimit, RateLimit, SlotLimit
from perdure.domain.duration import Duration, parse_duration
from perdure.domain.jobs.states import JobState
from perdure.errors import SettingsError
from perdure.kinds.kind import Kind
from perdure.kinds.options import checked_name
from perdure.policy.limits.gates import Concurrency, Gate, Rate
from perdure.storage.operate.kinds import KindRecord
from perdure.storage.records import Keep


def declared_record(kind: Kind, keep: Keep | Duration | None, state_words: Mapping[str, str] | None) -> KindRecord:
    """The stored record of a kind; invalid values are refused by name."""
    name = kind.name
    return KindRecord(
        name=name,
        limits=declared_limits(kind),
        words={} if state_words is None else _checked_words(f"state_words of job {name}", state_words),
        keep=None if keep is None else _checked_keep(f"keep of job {name}", keep),
    )


def declared_limits(kind: Kind) -> tuple[DeclaredLimit, ...]:
    """The limits that a kind declares, in their order, the breaker last."""
    breaker = kind.breaker
    limits = [_limit(gate) for gate in kind.gates]
    if breaker is not None:
        limits.append(
            BreakerLimit(name=breaker.name, failures=breaker.failures, window=breaker.window, open_for=breaker.open_for)
        )
    return tuple(limits)


def _limit(gate: Gate) -> DeclaredLimit:
    if isinstance(gate, Rate):
        return RateLimit(n=gate.n, per=gate.per, name=gate.name, by=_by(gate), spread=gate.spread)
    if isinstance(gate, Concurrency):
        return SlotLimit(n=gate.n, name=gate.name, by=_by(gate))
    return BudgetLimit(name=gate.name, daily=gate.daily, weekly=gate.weekly, monthly=gate.monthly)


def _by(gate: Rate | Concurrency) -> str:
    if gate.key is None:
        return ""
    return ", ".join(gate.key) if isinstance(gate.key, tuple) else "a function of its arguments"


def _checked_keep(setting: str, keep: Keep | Duration) -> Keep:
    if isinstance(keep, Keep):
        return keep
    span = parse_duration(setting, keep, error=SettingsError)
    return Keep(succeeded=span, cancelled=span, dead=span)


def _checked_words(setting: str, words: object) -> dict[str, str]:
    if not isinstance(words, Mapping):
        raise SettingsError(setting, f'must give words by state, as {{"succeeded": "sent"}}, got {words!r}')
    checked = {}
    for state, word in words.items():
        if state not in set(JobState):
            raise SettingsError(setting, f"name {state!r}, which is not a state; states are {', '.join(JobState)}")
        if checked_name(f"{setting}: {state}", word) in set(JobState) - {state}:
            raise SettingsError(setting, f"call {state} {word!r}, which is the name of another state")
        checked[JobState(state).value] = word
    return checked
