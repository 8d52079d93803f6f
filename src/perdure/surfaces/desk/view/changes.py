"""The details of an audit entry: changes from old to new values, and other facts."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any, Final

import msgspec
from msgspec import Struct

from perdure.domain.operate.audit import AuditEntry
from perdure.surfaces.desk.view.numbers import short_span

VALUE_LIMIT_CHARACTERS: Final = 300
SPAN_LIMIT_CHARACTERS: Final = 24
_FRACTION: Final = re.compile(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d+")  # decimals of seconds
_SPAN: Final = re.compile(r"-?P(?=[\dT])(\d+D)?(T\d+(\.\d+)?S)?")  # as JSON holds it
_SECONDS: Final = frozenset({"keep"})  # names of spans that are stored as numbers
_FACTS_SHOWN: Final = 16  # facts and changes
_ELSEWHERE: Final = frozenset({"before", "after"})


class Change(Struct, frozen=True):
    """One value before and after; None: there was or is none."""

    name: str
    before: str | None
    after: str | None


class Account(Struct, frozen=True):
    """The details of an entry: facts by name, and changes."""

    facts: tuple[tuple[str, str], ...]
    changes: tuple[Change, ...]

    def __len__(self) -> int:
        return len(self.facts) + len(self.changes)

    @property
    def first(self) -> Account:
        """The part that fits into a row of a list."""
        return Account(self.facts[:_FACTS_SHOWN], self.changes[: max(_FACTS_SHOWN - len(self.facts), 0)])

    @property
    def rest(self) -> Account:
        """The part that is folded until the reader opens it."""
        return Account(self.facts[_FACTS_SHOWN:], self.changes[max(_FACTS_SHOWN - len(self.facts), 0) :])


def account_of(entry: AuditEntry) -> Account:
    """The details formatted for people; unchanged values are left out."""
    before, after = (_named(entry.details.get(when)) for when in ("before", "after"))
    changes = [
        Change(name, _text(name, before.get(name)), _text(name, after.get(name))) for name in {**before, **after}
    ]
    facts = [(name, _text(name, value) or "none") for name, value in entry.details.items() if name not in _ELSEWHERE]
    return Account(tuple(facts), tuple(change for change in changes if change.before != change.after))


def _named(found: Any) -> dict[str, Any]:
    if found is None:
        return {}
    return found if isinstance(found, dict) else {"value": found}


def _text(name: str, value: Any) -> str | None:
    if value is None:
        return None
    if name in _SECONDS and isinstance(value, int | float):
        return short_span(value)
    if isinstance(value, str):
        if len(value) < SPAN_LIMIT_CHARACTERS and _SPAN.fullmatch(value):
            return short_span(msgspec.convert(value, timedelta))
        return _FRACTION.sub(r"\1", value)[:VALUE_LIMIT_CHARACTERS]
    return msgspec.json.encode(value).decode()[:VALUE_LIMIT_CHARACTERS]
