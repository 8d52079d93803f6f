"""The identity of this process, and whether another one still runs.

A pid alone proves nothing: it is reused, after a reboot from 1 on, and each container counts its own. So a process is
named by host, boot and pid namespace together, its pid, and its start time. Where the system does not provide these
(anything but Linux), the host is unique to the process, no process claims to know that it is gone, and its death is
noticed only by its lease.
"""

from __future__ import annotations

import os
import socket
from functools import lru_cache
from pathlib import Path
from uuid import uuid4

from perdure.domain.worker import ProcessIdentity

_START_TIME_FIELD = 19  # field 22 of /proc/PID/stat, counted after the command's closing bracket


@lru_cache(maxsize=1)
def this_host() -> str:
    """Name this machine, this boot of it, and this pid namespace."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return f"{socket.gethostname()}/{uuid4()}"
    return f"{socket.gethostname()}/{boot}/{namespace}"


def this_process() -> ProcessIdentity:
    """The identity of the calling process."""
    pid = os.getpid()
    try:
        started = _start_time(pid)
    except OSError:
        started = None
    return ProcessIdentity(this_host(), pid, started or 0)


def is_alive(process: ProcessIdentity) -> bool:
    """Whether this exact process still exists; only for processes of this host. When in doubt, it does."""
    if process.host != this_host() or not Path("/proc/self/stat").exists():
        return True
    try:
        return _start_time(process.pid) == process.started
    except OSError:
        return _exists(process.pid)


def _exists(pid: int) -> bool:
    """Whether such a process exists at all, even one that /proc hides (`hidepid`)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it exists, and belongs to another user
    return True


def _start_time(pid: int) -> int | None:
    """The start time of a process in kernel ticks since boot; None if it is a zombie.

    Raises OSError if there is nothing to read: no such process, or a hidden one.
    """
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    fields = stat.rpartition(")")[2].split()
    if fields[0] in {"Z", "X"}:
        return None
    return int(fields[_START_TIME_FIELD])
