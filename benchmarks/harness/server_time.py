"""The processor time of a PostgreSQL server, from outside: that of all its processes (Linux)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import psycopg

_TICKS: Final = os.sysconf("SC_CLK_TCK")


class ServerTime:
    """Reads how long the processes of one server have run, those that have ended included."""

    def __init__(self, url: str) -> None:
        with psycopg.connect(url) as connection:
            self._postmaster = _parent_of(connection.info.backend_pid)

    def seconds(self) -> float:
        """The seconds so far."""
        ticks = 0
        for entry in Path("/proc").iterdir():
            fields = _fields(entry / "stat") if entry.name.isdigit() else None
            if fields is None:
                continue
            if int(entry.name) == self._postmaster:
                ticks += sum(map(int, fields[11:15]))  # its own, and of children that have ended
            elif int(fields[1]) == self._postmaster:
                ticks += int(fields[11]) + int(fields[12])
        return ticks / _TICKS


def _parent_of(pid: int) -> int:
    fields = _fields(Path(f"/proc/{pid}/stat"))
    assert fields is not None, f"no process {pid}: the server must run on this machine"
    return int(fields[1])


def _fields(stat: Path) -> list[str] | None:
    """The fields from the third on; None: the process has ended."""
    try:
        return stat.read_text().rpartition(")")[2].split()
    except OSError:
        return None
