"""Whether a document meets conditions: what `JobFilter(where=…)` means, for engines that ask us row by row.

An engine with a language of its own for JSON must answer the same: `tests/conformance/views/test_where.py` compares.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final

from perdure.domain.operate.condition import Condition
from perdure.policy.secrets.redaction import masks_of_json

_NOTHING: Final = object()
_PLACE: Final = re.compile(r"-?[0-9]{1,9}")


def meets(document: Any, conditions: Iterable[Condition]) -> bool:
    """Whether the value of a field meets all conditions on it; None: there is no such value."""
    return all(_meets(_NOTHING if document is None else document, condition) for condition in conditions)


def meets_of_tags(tags: Iterable[str], conditions: Iterable[Condition]) -> bool:
    """The same for tags: one of them must meet a condition, and with `!=` all of them."""
    words = list(tags)
    return all(
        all(_meets(word, condition) for word in words)
        if condition.op == "!="
        else any(_meets(word, condition) for word in words)
        for condition in conditions
    )


def meets_of_error(error_type: str | None, message: str | None, conditions: Iterable[Condition]) -> bool:
    """The same for an error, whose parts are its type and its message, and which is both together without a path."""
    if error_type is None:
        return meets(None, conditions)
    parts = {(): f"{error_type}: {message}", ("type",): error_type, ("message",): message}
    return all(_compares(parts[condition.path], condition) for condition in conditions)


def _meets(document: Any, condition: Condition) -> bool:
    return _compares(_at(document, condition.path), condition)


def _at(value: Any, path: Iterable[str]) -> Any:
    for step in path:
        if isinstance(value, dict):
            value = value.get(step, _NOTHING)
        elif isinstance(value, list) and _PLACE.fullmatch(step) and -len(value) <= int(step) < len(value):
            value = value[int(step)]
        else:
            return _NOTHING
    return value


def _compares(value: Any, condition: Condition) -> bool:
    if condition.op in {"=", "!="}:
        return _is(value, condition) is (condition.op == "=")
    if value is _NOTHING or condition.op == "exists":
        return value is not _NOTHING
    if condition.op == "~":
        return _holds(value, (condition.value or "").lower())
    number = condition.number
    if number is None:
        return isinstance(value, str) and _ordered(value, condition.value or "", condition)
    return isinstance(value, (int, float)) and not isinstance(value, bool) and _ordered(value, number, condition)


def _holds(value: Any, piece: str) -> bool:
    """Whether a text holds this piece as it is shown, without its secrets; of an object or a list, its JSON."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if piece not in text.lower():
        return False
    for pattern, mask in masks_of_json():
        text = re.sub(pattern, mask, text, flags=re.IGNORECASE)
    return piece in text.lower()


def _ordered(value: Any, limit: Any, condition: Condition) -> bool:
    return bool(value > limit if condition.op == ">" else value < limit)


def _is(value: Any, condition: Condition) -> bool:
    if value is _NOTHING or isinstance(value, (dict, list)):
        return False
    return any(
        value == wanted and isinstance(value, bool) is isinstance(wanted, bool) for wanted in condition.candidates
    )
