"""Every kind declared in this process, so that a child process finds the kind it must run.

A kind is identified by the module of its handler and by its registered name. Values stored in a database never decide
what is imported.
"""

from __future__ import annotations

from typing import Final
from weakref import WeakValueDictionary

from msgspec import Struct

from perdure.kinds.kind import Kind

_MAIN: Final = "__main__"
_MAIN_AGAIN: Final = "__mp_main__"  # the name of a script when a process that it started imports it


class Address(Struct, frozen=True):
    """Where another process that runs the same code finds a kind."""

    module: str
    handler: str
    name: str


_DECLARED: Final[WeakValueDictionary[Address, Kind]] = WeakValueDictionary()


def note_declared(kind: Kind) -> None:
    """Register a kind for the lifetime of its app."""
    _DECLARED[address_of(kind)] = kind


def address_of(kind: Kind) -> Address:
    """The address at which this kind was declared."""
    handler = kind.handler
    module = handler.__module__
    name = getattr(handler, "__qualname__", type(handler).__qualname__)
    return Address(_MAIN if module == _MAIN_AGAIN else module, name, kind.name)


def find_declared(address: Address) -> Kind | None:
    """The kind at this address, if its module was imported."""
    return _DECLARED.get(address)
