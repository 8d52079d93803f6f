"""From a search to the filter that it means."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from perdure.domain.duration import parse_duration
from perdure.domain.jobs.ids import is_job_id
from perdure.domain.jobs.states import JobState
from perdure.domain.operate.condition import FIELDS, Condition
from perdure.errors import ArgumentError
from perdure.operate.search.words import Word, one_word, steps_of, text_of, words_of
from perdure.policy.secrets.redaction import is_secret_name
from perdure.policy.secrets.secret import TAG
from perdure.storage.records import JobFilter

KEYS: Final = {
    "kind": "jobs of this kind",
    "state": "in this state; several: state:dead,cancelled",
    "queue": "in this queue",
    "tag": "with this tag",
    "ref": "the job of this ref",
    "id": "the job of this id",
    "group": "whose last error has this fingerprint",
    "mark": "with this mark",
    "is": "is:marked or is:unmarked",
    "has": "has:args.user.id: where there is such a value",
    "since": "made since: since:1h, since:2026-01-31",
    "before": "made before: before:7d, before:2026-01-31T09:00Z",
    "finished-since": "finished since: finished-since:1h",
    "finished-before": "finished before: finished-before:7d",
}
"""The words before a colon, and what they mean."""

_TEXTS: Final = {"kind": "kind", "queue": "queue", "tag": "tag", "ref": "ref", "group": "fingerprint", "mark": "mark"}
_TIMES: Final = {
    "since": "created_after",
    "before": "created_before",
    "finished-since": "finished_after",
    "finished-before": "finished_before",
}
_MARKED: Final = {"marked": True, "unmarked": False}
_SPAN: Final = re.compile(r"[0-9.]+ ?[a-z]+")
_PARTIAL: Final = frozenset({"~", ">", "<"})
_ECHO_LIMIT_CHARACTERS: Final = 60


def parse_search(text: str, *, now: datetime) -> JobFilter:
    """Read a search such as `kind:charge_card state:dead args.user.id=42 error~timeout since:1h`.

    Spans count back from `now`; times without a zone are UTC. Raises ArgumentError, which names the unknown word and
    what is allowed there.
    """
    found = _Found(now)
    for word in words_of(text):
        found.add(word)
    try:
        return JobFilter(**found.fields, where=tuple(found.where))
    except ArgumentError as error:
        raise ArgumentError("search", f"is not understood: {error}") from None


def parse_condition(text: str) -> Condition:
    """Read one condition, such as `args.user.id=42`, `tags~eu`, or `args.user` for any value; spaces are part of it."""
    word = one_word(text)
    parts = word.split()
    head, sign, value = (word.letters, "exists", "") if parts is None else parts
    steps = steps_of(head)
    if sign == ":" or steps[0] not in FIELDS:
        raise _bad(word, f"conditions are on {', '.join(FIELDS)}, as in args.user.id=42", "where")
    try:
        return _guarded(Condition(steps[0], steps[1:], sign, value))
    except ArgumentError as error:
        raise _bad(word, str(error), "where") from None


class _Found:
    """The conditions read so far."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self.fields: dict[str, Any] = {}
        self.where: list[Condition] = []

    def add(self, word: Word) -> None:
        parts = word.split()
        if parts is None:
            self._add_bare(word)
            return
        head, sign, value = parts
        name = text_of(head)
        if sign == ":" and name in KEYS:
            self._add_key(word, name, value)
        elif sign == ":" and name.partition(".")[0] in FIELDS:
            raise _bad(word, f"write {_echo(name)}={_echo(value)}, or {_echo(name)}~{_echo(value)} for a piece of it")
        elif sign == ":":
            raise _bad(word, f"the words before a colon are {', '.join(KEYS)}")
        else:
            self._add_condition(word, steps_of(head), sign, value)

    def _add_bare(self, word: Word) -> None:
        text = text_of(word.letters)
        if not is_job_id(text):
            hints = f"error~{word.typed}, args~{word.typed}, ref:{word.typed}, kind:{word.typed}"
            raise _bad(word, f"a word alone must be the id of a job; write for example {hints}")
        self._add_id(text)

    def _add_key(self, word: Word, name: str, value: str) -> None:
        if not value:
            raise _bad(word, f"a value is missing after the colon: {KEYS[name]}")
        if name in _TEXTS:
            self._set(word, _TEXTS[name], value)
        elif name in _TIMES:
            self._set(word, _TIMES[name], self._time(word, value))
        elif name == "state":
            self._add_states(word, value)
        elif name == "id":
            if not is_job_id(value):
                raise _bad(word, "the id of a job is a UUID; a ref is searched for by ref:…")
            self._add_id(value)
        elif name == "is":
            if value not in _MARKED:
                raise _bad(word, "write is:marked or is:unmarked")
            self._set(word, "marked", _MARKED[value])
        else:
            parts = word.split()
            steps = steps_of(word.letters[len(parts[0]) + 1 :]) if parts else []
            self._add_where(word, lambda: Condition(steps[0], steps[1:], "exists"))

    def _add_condition(self, word: Word, steps: list[str], sign: str, value: str) -> None:
        if steps[0] not in FIELDS:
            hint = f"; write {steps[0]}:{_echo(value)}" if steps[0] in KEYS else ""
            raise _bad(word, f"conditions are on {', '.join(FIELDS)}, as in args.user.id=42{hint}")
        if steps == ["error"] and sign == "~" and "error" not in self.fields:
            self._set(word, "error", value)
        else:
            self._add_where(word, lambda: Condition(steps[0], steps[1:], sign, value))

    def _add_where(self, word: Word, make: Callable[[], Condition]) -> None:
        try:
            self.where.append(_guarded(make()))
        except ArgumentError as error:
            raise _bad(word, str(error)) from None

    def _add_id(self, job_id: str) -> None:
        self.fields["ids"] = (*self.fields.get("ids", ()), job_id.strip().lower())

    def _add_states(self, word: Word, value: str) -> None:
        states = value.split(",")
        for state in states:
            if state not in set(JobState):
                raise _bad(word, f"the states are {', '.join(JobState)}")
        self.fields["states"] = (*self.fields.get("states", ()), *states)

    def _set(self, word: Word, field: str, value: object) -> None:
        if field in self.fields:
            raise _bad(word, "it is given twice; a job has to meet every condition")
        self.fields[field] = value

    def _time(self, word: Word, value: str) -> datetime:
        try:
            if _SPAN.fullmatch(value):
                return self._now - parse_duration("span", value)
            moment = datetime.fromisoformat(value)
            return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        except (ValueError, OverflowError):
            raise _bad(
                word, "write a span such as 90s, 2h, 7d, or a time such as 2026-01-31 or 2026-01-31T09:00Z"
            ) from None


def _guarded(condition: Condition) -> Condition:
    """The condition, unless it would tell a secret letter by letter: those are masked, also for who may search."""
    if condition.op in _PARTIAL and any(step == TAG or is_secret_name(step) for step in condition.path):
        path = ".".join((condition.field, *condition.path))
        raise ArgumentError("where", f"looks into {_echo(path)}, a secret: compare it as a whole, by = or !=")
    return condition


def _bad(word: Word, advice: str, field: str = "search") -> ArgumentError:
    return ArgumentError(field, f"does not understand {_echo(word.typed)}: {advice}")


def _echo(text: str) -> str:
    return text if len(text) <= _ECHO_LIMIT_CHARACTERS else f"{text[:_ECHO_LIMIT_CHARACTERS]}…"
