"""Which names our tables have, and the statements that use them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Final

from msgspec import Struct

from perdure.engines.shared.database.instants import span
from perdure.engines.shared.database.sql_files import check_identifier, load_statements

_PACKAGE: Final = "perdure.engines.postgres"
_COMMENT: Final = re.compile(r"--.*$", re.MULTILINE)
_SHARED: Final = {
    "line_up": "intake/entering.sql",
    "take_picked": "claims/taking.sql",
}  # parts of statements, and their files
_SPACE: Final = re.compile(r"\s+")


class Naming(Struct, frozen=True):
    """A schema and a prefix: together they separate several apps within a database."""

    schema: str
    prefix: str = ""

    def __post_init__(self) -> None:
        check_identifier("schema", self.schema)
        if self.prefix:
            check_identifier("prefix", self.prefix)

    def __call__(self, name: str) -> str:
        """The full name of a table or sequence."""
        return f'"{self.schema}"."{self.prefix}{name}"'

    @property
    def channel(self) -> str:
        """The channel of wake-ups; two names of 31 letters still fit into one of 63."""
        return f"{self.schema}.{self.prefix}"

    @property
    def channel_of_ends(self) -> str:
        """The channel of awaited jobs that have ended; as long as the other."""
        return f"{self.schema}:{self.prefix}"

    def statements(self, file: str, words: Mapping[str, str] | None = None) -> dict[str, str]:
        """The statements of one file, each on one line: the driver keeps only short ones in its cache.

        `words` fill slots that are no names of tables.
        """
        return _statements(self, file, tuple((words or {}).items()))

    def fill(self, slot: str) -> str:
        """A name, or a part that several statements share."""
        if slot in _SHARED:
            return load_statements(_PACKAGE, _SHARED[slot], self, _interval)[slot].strip().rstrip(";")
        return self(slot)


@lru_cache  # the second store of a process, such as a sibling, opens at once
def _statements(naming: Naming, file: str, words: tuple[tuple[str, str], ...]) -> dict[str, str]:
    fixed = dict(words)
    loaded = load_statements(
        _PACKAGE, file, lambda slot: fixed[slot] if slot in fixed else naming.fill(slot), _interval
    )
    return {name: _SPACE.sub(" ", _COMMENT.sub("", sql)).strip().rstrip(";") for name, sql in loaded.items()}


def _interval(length: timedelta) -> str:
    return f"interval '{span(length)} microseconds'"
