"""A program to be supervised: it notes that it started, and then behaves as its first argument says."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from perdure.lifecycle.process.exits import EXIT_FAILED, EXIT_OK, EXIT_RECYCLED, EXIT_USAGE
from perdure.lifecycle.process.supervisor import follow_supervisor, is_supervised


def main(manner: str, folder: Path) -> int:
    """Behave; the exit code."""
    follow_supervisor()
    if manner == "sleep":
        time.sleep(60)
    if manner == "fail":
        return EXIT_FAILED
    first = not any(folder.glob("*.started"))
    for number in (signal.SIGTERM, signal.SIGTSTP):
        signal.signal(number, lambda got, _: _note(folder, signal.Signals(got).name))
    if manner == "obey":
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_OK))
    if manner == "retire once":
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_OK))
        if first:
            _note(folder, "started")
            return EXIT_RECYCLED
    if manner == "refuse":
        return EXIT_USAGE
    _note(folder, "started" if is_supervised() else "alone")
    while True:
        time.sleep(60)


def _note(folder: Path, what: str) -> None:
    (folder / f"{os.getpid()}.{what}").touch()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
