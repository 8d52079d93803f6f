"""The ledger: what producers and workers did, written outside the system that is under test.

Every line is one write at the end of a file, so that lines of many processes never mix, and a process killed right
after it still has written it: the page cache outlives its writers.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path


class Ledger:
    """The pen: each note is one line, and is safe when `note` returns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, *words: object) -> None:
        """Write one line."""
        os.write(self._file, (" ".join(map(str, words)) + "\n").encode())

    def close(self) -> None:
        """Put the pen down."""
        os.close(self._file)


@dataclass(frozen=True, slots=True)
class Run:
    """A handler began, or ended, under a claim; `at` is monotonic time in nanoseconds, one clock for all processes."""

    job: str
    token: int
    attempt: int
    pid: int
    at: int


@dataclass(slots=True)
class Book:
    """What the ledger says."""

    wanted: dict[str, str] = field(default_factory=dict)  # by whom
    receipts: dict[str, Counter[str]] = field(default_factory=dict)  # enqueue returned, and said so
    starts: list[Run] = field(default_factory=list)
    ends: list[Run] = field(default_factory=list)
    stale: Counter[str] = field(default_factory=Counter)  # writes that a worker was told had come too late
    unsure: int = 0  # writes that were tried again after an answer got lost, and had been applied the first time
    opened: dict[int, str] = field(default_factory=dict)  # processes at work: name by pid
    lost_workers: int = 0
    troubles: Counter[str] = field(default_factory=Counter)  # database errors that a worker met, by what it was doing

    @classmethod
    def read(cls, path: Path) -> Book:
        """Read all that has been written so far."""
        return cls.of(path.read_text(encoding="utf-8").splitlines() if path.exists() else [])

    @classmethod
    def of(cls, lines: list[str]) -> Book:
        """Read lines."""
        book = cls()
        for line in lines:
            book._enter(line.split(" "))
        return book

    def _enter(self, words: list[str]) -> None:
        match words:
            case ["want", job, by]:
                self.wanted[job] = by
            case ["enqueued", job, intake]:
                self.receipts.setdefault(job, Counter())[intake] += 1
            case ["start" | "end" as what, job, token, attempt, pid, at]:
                run = Run(job, int(token), int(attempt), int(pid), int(at))
                (self.starts if what == "start" else self.ends).append(run)
            case ["stale", job]:
                self.stale[job] += 1
            case ["unsure", count]:
                self.unsure += int(count)
            case ["open", pid, name]:
                self.opened[int(pid)] = name
            case ["lost", _]:
                self.lost_workers += 1
            case ["trouble", *what]:
                self.troubles[" ".join(what)] += 1
            case ["ran", _, _, _] | ["in" | "out", _, _, _, _]:
                pass  # a scheduled job, or a gated one: read by its own test
            case _:
                raise ValueError(f"not a line of the ledger: {' '.join(words)!r}")
