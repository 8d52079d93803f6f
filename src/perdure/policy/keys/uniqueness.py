"""Which jobs count as the same one, and in which states (E1, E2, G7)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final, TypeVar

from perdure.domain.duration import Duration, parse_duration
from perdure.domain.jobs.job import OnConflict, UniqueKey
from perdure.domain.jobs.states import ACTIVE, JobState
from perdure.errors import PayloadError, SettingsError
from perdure.policy.keys.grouping import KeyFunction, as_json, call_with_arguments, check_parameters

Word = TypeVar("Word", bound=StrEnum)

KEY_LIMIT_CHARACTERS: Final = 200

By = str | tuple[str, ...] | KeyFunction


class Scope(StrEnum):
    """The jobs among which a key must be unique."""

    KIND = "kind"  # jobs of the same kind, in any queue
    QUEUE = "queue"  # jobs of the same kind in the same queue
    GLOBAL = "global"  # all jobs of any kind that are unique by the same values


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Unique:
    """No second job with the same values of `by` is accepted while the first is in one of the `states`.

    `by` names arguments, or is a function of all of them; None means every argument, ``()`` none: one job of the kind
    at a time. The default is all active states. `dead_for` keeps a dead job's place for that long. On a conflict,
    enqueue returns the existing job ("return"), raises DuplicateJobError ("reject"), or replaces the existing job's
    arguments ("replace").
    """

    by: tuple[str, ...] | KeyFunction | None
    states: frozenset[JobState]
    dead_for: timedelta | None
    on_conflict: OnConflict
    scope: Scope

    def __init__(
        self,
        *,
        by: By | None = None,
        states: Collection[JobState | str] = ACTIVE,
        dead_for: Duration | None = None,
        on_conflict: OnConflict | str = OnConflict.RETURN,
        scope: Scope | str = Scope.KIND,
    ) -> None:
        set_field = object.__setattr__  # how to set a field of a frozen dataclass
        set_field(self, "by", _checked_by(by))
        set_field(self, "states", _checked_states(states))
        set_field(self, "dead_for", _span(dead_for))
        set_field(self, "on_conflict", _member("unique.on_conflict", OnConflict, on_conflict))
        set_field(self, "scope", _member("unique.scope", Scope, scope))
        if not self.states:
            raise SettingsError("unique.states", "must name at least one state, or be left out for all active ones")
        if self.dead_for and JobState.DEAD in self.states:
            raise SettingsError("unique.dead_for", 'has no meaning while "dead" is among unique.states: drop one')

    def check(self, parameters: Iterable[str]) -> None:
        """Refuse a `by` that names something which is not a parameter of the handler."""
        check_parameters("unique.by", self.by, parameters)

    def key_for(self, kind: str, queue: str, arguments: Mapping[str, Any]) -> UniqueKey:
        """The key of a job with these arguments, defaults filled in; their order does not matter."""
        match self.scope:
            case Scope.KIND:
                realm, within = kind, [kind]
            case Scope.QUEUE:
                realm, within = f"{queue}/{kind}", [queue, kind]
            case Scope.GLOBAL:
                realm, within = "*", []
        digest = sha256(as_json("unique.by", [self.scope, within, self._values(arguments)])).hexdigest()
        key = f"{realm[: KEY_LIMIT_CHARACTERS - len(digest) - 1]}:{digest}"
        return UniqueKey(key, self.states, self.dead_for, self.on_conflict)

    def _values(self, arguments: Mapping[str, Any]) -> Any:
        if self.by is None:
            return dict(arguments)
        if callable(self.by):
            return call_with_arguments("unique.by", self.by, arguments)
        missing = [name for name in self.by if name not in arguments]
        if missing:
            raise PayloadError(missing[0], "is missing, but the job is unique by it")
        return {name: arguments[name] for name in self.by}


def _checked_by(by: object) -> object:
    if by is None or callable(by):
        return by
    names = (by,) if isinstance(by, str) else by
    if isinstance(names, tuple | list) and all(isinstance(name, str) for name in names):
        return tuple(names)
    raise SettingsError("unique.by", f'must name arguments, such as ("url",), or be a function of them, got {by!r}')


def _checked_states(states: Collection[JobState | str]) -> frozenset[JobState]:
    if isinstance(states, str):
        raise SettingsError("unique.states", f"must be a list of states, got {states!r}; write [{states!r}]")
    return frozenset(_member("unique.states", JobState, state) for state in states)


def _span(dead_for: Duration | None) -> timedelta | None:
    span = None if dead_for is None else parse_duration("unique.dead_for", dead_for, error=SettingsError)
    return span or None


def _member(setting: str, words: type[Word], value: str) -> Word:
    try:
        return words(value)
    except ValueError:
        choice = ", ".join(words)
        raise SettingsError(setting, f"must be one of {choice}; got {value!r}") from None
