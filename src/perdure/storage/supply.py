"""Makes jobs while the previous ones are stored.

Making a job (checking and encoding its arguments) takes about as long as storing it. From a supply, the next jobs are
made while the database works on the previous ones. Each is made once, no matter how often it is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import overload

from perdure.domain.jobs.job import NewJob


class Supply(Sequence[NewJob]):
    """A sequence whose length is unknown until it is asked for."""

    def __init__(self, source: Iterable[NewJob]) -> None:
        self._source = iter(source)
        self._made: list[NewJob] = []

    def up_to(self, end: int) -> int:
        """Make jobs until there are `end` of them, or the source is empty; returns how many there are."""
        missing = end - len(self._made)
        if missing > 0:
            self._made.extend(islice(self._source, missing))
        return len(self._made)

    def __len__(self) -> int:
        self._made.extend(self._source)
        return len(self._made)

    def __iter__(self) -> Iterator[NewJob]:
        len(self)
        return iter(self._made)

    @overload
    def __getitem__(self, index: int) -> NewJob: ...
    @overload
    def __getitem__(self, index: slice) -> list[NewJob]: ...
    def __getitem__(self, index: int | slice) -> NewJob | list[NewJob]:
        last = index if isinstance(index, int) else index.stop
        if last is None or last < 0:
            len(self)
        else:
            self.up_to(last + 1)
        return self._made[index]
