"""The store calls that an isolated attempt makes through its worker, as messages."""

from __future__ import annotations

from functools import cache
from typing import Any, Final, get_type_hints

import msgspec
from msgspec import Raw, Struct

from perdure.storage.port import Store

RELAYED: Final = frozenset(
    {
        "steps",
        "save_steps",
        "spawn",
        "family",
        "children",
        "emitted",
        "job",
        "jobs",
        "save_progress",
        "save_lines",
        "once_per",
    }
)


class StoreCall(Struct, frozen=True):
    """One call, with all its arguments in their order, as JSON."""

    name: str
    arguments: Raw


def call_of(name: str, arguments: tuple[Any, ...]) -> StoreCall:
    """The call as a message."""
    return StoreCall(name, Raw(msgspec.json.encode(arguments)))


def arguments_of(call: StoreCall) -> tuple[Any, ...]:
    """The decoded arguments; raises LookupError for a call that is not relayed."""
    if call.name not in RELAYED:
        raise LookupError(f"{call.name} is not relayed")
    arguments: tuple[Any, ...] = msgspec.json.decode(call.arguments, type=_types(call.name)[0])
    return arguments


def answer_of(name: str, answer: Raw) -> Any:
    """The decoded answer of the store."""
    return msgspec.json.decode(answer, type=_types(name)[1])


@cache
def _types(name: str) -> tuple[Any, Any]:
    """The types of the arguments and of the answer, from the port's annotations."""
    hints = get_type_hints(getattr(Store, name))
    answer = hints.pop("return")
    return tuple[*hints.values()], answer  # type: ignore[misc] # known only when it runs
