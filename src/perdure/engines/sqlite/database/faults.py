"""What SQLite's result codes mean to the caller: which error of ours, and what to do about it."""

from __future__ import annotations

from typing import Final

from perdure.errors import SchemaError, StoreError, StoreRefused, StoreUnavailable

_ERROR: Final = 1
_REFUSALS: Final = {
    3: "its permissions forbid it: check owner and mode of the file",
    8: "it is read-only: make the file and its folder writable for this process",
    11: "it is damaged: stop all writers and restore it from a backup",
    13: "the disk is full: make room, then try again; what was being written has been rolled back",
    14: "it cannot be opened: check that the folder exists and is writable for this process",
    23: "access was denied",
    26: "this file is not an SQLite database: choose another path",
}


class StoreBusy(StoreUnavailable):
    """Another connection holds the lock just now."""


def failure(code: int, message: str, path: str) -> StoreError:
    """Our error for a result code of SQLite."""
    primary = code & 0xFF
    if primary in {5, 6}:
        return StoreBusy(f"{path}: another connection holds the database's lock ({message})")
    if primary in _REFUSALS:
        return StoreRefused(f"{path}: {_REFUSALS[primary]} ({message})")
    if primary == _ERROR and is_about_schema(message):
        return SchemaError(f"{path}: {message}: run `perdure migrate`")
    if primary in {4, 7, 9, 10, 15}:
        return StoreUnavailable(f"{path}: the operating system failed a read or write ({message})")
    return StoreError(f"{path}: {message}")


def is_about_schema(message: str) -> bool:
    """Whether a message of SQLite, from any driver, says that tables are missing."""
    return "no such table" in message
