"""Views as JSON. Stored JSON documents, such as arguments, are sent as JSON, not as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from perdure.domain.flows.flow import Child, Emission, StepRecord
from perdure.domain.gate import Pause
from perdure.domain.jobs.job import JobView
from perdure.domain.operate.statistics import Group, Statistics
from perdure.domain.schedule import Schedule

DOCUMENTS: Final[Mapping[type[Struct], frozenset[str]]] = {
    JobView: frozenset({"args", "meta", "result", "cursor", "settings"}),
    StepRecord: frozenset({"result"}),
    Schedule: frozenset({"args", "meta", "settings"}),
    Pause: frozenset({"args"}),
    Emission: frozenset({"payload"}),
    Child: frozenset({"result"}),
}
"""The fields of views that hold a stored JSON document."""

_NONE: Final[frozenset[str]] = frozenset()
_WITHOUT_DOCUMENTS: Final = (Group, Statistics)
"""Large views that hold no documents, sets or omitted values: msgspec encodes them directly."""


def encoded(value: Any) -> bytes:
    """The JSON of a response."""
    return msgspec.json.encode(_plain(value))


def _plain(value: Any) -> Any:
    if isinstance(value, _WITHOUT_DOCUMENTS):
        return value
    if isinstance(value, Struct):
        documents = DOCUMENTS.get(type(value), _NONE)
        return {
            field: _document(found) if field in documents else _plain(found)
            for field in value.__struct_fields__
            if (found := getattr(value, field)) is not msgspec.UNSET
        }
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, frozenset | set):
        return sorted(value)
    return value


def _document(text: str | None) -> Any:
    """A stored document, unchanged; a damaged one is sent as text."""
    if text is None:
        return None
    data = text.encode()
    try:
        msgspec.json.decode(data, type=Raw)
    except (msgspec.DecodeError, RecursionError):
        return text
    return Raw(data)
