"""Every kind that is declared in this process, so that a process of its own finds the one that it must run.

A kind is known by where its handler was written and by its registered name. Nothing that is stored in a database has a
say in what is imported.
"""

from __future__ import annotations

from typing import Final
from weakref import WeakValueDictionary

from msgspec import Struct

from perdure.kinds.kind import Kind

_MAIN: Final = "__main__"
_MAIN_AGAIN: Final = "__mp_main__"  # what a script is called when a process that it started imports it


class Address(Struct, frozen=True):
    """Where a kind is found by another process that runs the same code."""

    module: str
    handler: str
    name: str


_DECLARED: Final[WeakValueDictionary[Address, Kind]] = WeakValueDictionary()


def note_declared(kind: Kind) -> None:
    """Remember a kind for as long as its app lives."""
    _DECLARED[address_of(kind)] = kind


def address_of(kind: Kind) -> Address:
    """Where this kind was declared."""
    handler = kind.handler
    module = handler.__module__
    name = getattr(handler, "__qualname__", type(handler).__qualname__)
    return Address(_MAIN if module == _MAIN_AGAIN else module, name, kind.name)


def find_declared(address: Address) -> Kind | None:
    """The kind at this address, if what declares it was imported."""
    return _DECLARED.get(address)
