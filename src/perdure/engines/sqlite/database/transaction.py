"""One transaction, as the parts of the store see it."""

from __future__ import annotations

from perdure.engines.sqlite.database.drivers import Connection
from perdure.engines.sqlite.database.files import OpenFile


class Transaction:
    """A connection inside BEGIN and COMMIT, with the time at which it began.

    Several operations may share one. `rings` says that jobs became ready in it: its committer notifies the workers.
    """

    __slots__ = ("_file", "change", "now", "rings", "run")

    def __init__(self, connection: Connection, file: OpenFile, now: int) -> None:
        self.run = connection.run
        self.change = connection.change
        self.now = now
        self.rings = False
        self._file = file

    def turns(self, count: int) -> int:
        """Reserve the next `count` places in line and return the first; workers get a wake-up."""
        self.rings = True
        return self.numbers(count)

    def numbers(self, count: int) -> int:
        """Give out the next `count` of a row of numbers and return the first.

        They follow the clock, so that processes agree, and never go back while this process lives.
        """
        first = max(self.now, self._file.last_turn + 1)
        self._file.last_turn = first + count - 1
        return first
