"""The database file: whether it can be used, and by which library.

SQLite's locks are POSIX locks, and those belong to the process: two SQLite libraries in one process do not see each
other's locks, and closing a descriptor in one drops the locks of the other. So one process opens one file through one
library only, and this module keeps the register. For the same reason a process that was forked while its parent had the
file open cannot use it: its library believes in locks that only the parent has. Over a network file system the locks,
and the memory that WAL shares between processes, do not work: such a file is refused.

A file that is deleted, moved or replaced while it is open still accepts writes, and no process will ever find
that again. So a transaction first looks whether the path still leads to the file that was opened; of single writes that
follow each other closely, one in a millisecond does.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Final

from perdure.errors import ForkError, StoreRefused, StoreUnavailable

_NETWORKED: Final = frozenset(
    [
        "9p",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "coda",
        "davfs",
        "fuse.ceph",
        "fuse.davfs2",
        "fuse.gcsfuse",
        "fuse.glusterfs",
        "fuse.rclone",
        "fuse.s3fs",
        "fuse.sshfs",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "smb",
        "smb2",
        "smb3",
        "smbfs",
    ]
)
_MOUNTS: Final = Path("/proc/self/mountinfo")


class OpenFile:
    """One database file as this process holds it: through one library, by any number of stores.

    `last_turn` is the last place in line given out; it is only touched under the database's write lock.
    """

    def __init__(self, identity: tuple[int, int], driver: str) -> None:
        self.identity = identity
        self.driver = driver
        self.pid = os.getpid()
        self.holders = 0
        self.last_turn = 0

    def refuse_stranger(self, real: str) -> None:
        """Raise StoreUnavailable if the path no longer leads to this file."""
        try:
            is_ours = _identity(real) == self.identity
        except OSError:
            is_ours = False
        if not is_ours:
            raise StoreUnavailable(
                f"{real}: the file was moved, deleted or replaced while it was open, and writes to it would be "
                "lost: restore it, or restart this process with the right file"
            )

    def is_of_a_parent(self) -> bool:
        """Whether it was opened before this process was forked, and is not ours to use or to close."""
        return self.pid != os.getpid()

    def refuse_fork(self, real: str) -> None:
        """Raise ForkError if a parent of this process had the file open when it forked."""
        if self.is_of_a_parent():
            raise ForkError(
                f"{real}: this process was forked while its parent had the file open, and SQLite's locks do not "
                "survive that: close the app before forking (app.close_sync(), or await app.close()), or open it only "
                "in the children"
            )


_book: dict[tuple[int, int], OpenFile] = {}
_lock = threading.Lock()


def prepare(path: str) -> str:
    """Make sure that a database can be read at this path, create the empty file if there is none; its real path."""
    real = os.path.realpath(path)
    folder = os.path.dirname(real)  # noqa: PTH120 - realpath is text, and so is all that follows
    if not os.path.isdir(folder):  # noqa: PTH112 - as above
        raise StoreRefused(f"{real}: the folder {folder} does not exist: create it first")
    if os.path.isdir(real):  # noqa: PTH112 - as above
        raise StoreRefused(f"{real}: this is a folder: give the path of a file")
    refuse_network(real)
    try:
        # O_EXCL: a file that exists is never opened here, since closing it would drop locks that SQLite holds. So it
        # must be closed before another thread finds it.
        with _lock:
            os.close(os.open(real, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644))
    except FileExistsError:
        pass
    except OSError as error:
        raise StoreRefused(f"{real}: the file cannot be created: {error.strerror}") from error
    if not os.access(real, os.R_OK):
        raise StoreRefused(f"{real}: the file is not readable by this process: check its owner and mode")
    return real


def why_read_only(real: str) -> str | None:
    """Why this process can only read the database; None: it can write it."""
    folder = os.path.dirname(real)  # noqa: PTH120 - as above
    if os.statvfs(real).f_flag & os.ST_RDONLY:
        return "its file system is mounted read-only"
    if not os.access(real, os.W_OK):
        return "the file is not writable by this process: check its owner and mode"
    if not os.access(folder, os.W_OK):
        return f"the folder {folder} is not writable, and SQLite keeps its log beside the database"
    return None


def refuse_network(real: str, mounts: Path = _MOUNTS) -> None:
    """Raise StoreRefused if the path lies on a file system that other machines share."""
    nearest, kind = file_system_of(real, mounts)
    if kind in _NETWORKED:
        raise StoreRefused(
            f"{real}: {nearest} is a network file system ({kind}), where SQLite's locks do not work: "
            "use a local disk, or PostgreSQL"
        )


def file_system_of(real: str, mounts: Path = _MOUNTS) -> tuple[str, str]:
    """The mount point and type of the path's file system; both empty where the system does not report them."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return "", ""
    nearest, kind = "", ""
    for line in lines:
        fields, _, rest = line.partition(" - ")
        point = fields.split()[4].replace("\\040", " ")
        if len(point) >= len(nearest) and (real == point or real.startswith(point.rstrip("/") + "/")):
            nearest, kind = point, rest.split()[0]
    return nearest, kind


def enter(real: str, driver: str) -> OpenFile:
    """Note that a store of this process opens the file; refuse if the other library holds it, or a parent did."""
    identity = _identity(real)
    with _lock:
        entry = _book.get(identity) or OpenFile(identity, driver)
        entry.refuse_fork(real)
        if entry.driver != driver:
            raise StoreRefused(
                f"{real}: this process has the file open through {entry.driver}; a second SQLite library ({driver}) "
                f"would break its locks and can corrupt it: use driver={entry.driver} everywhere in this process"
            )
        entry.holders += 1
        _book[identity] = entry
        return entry


def leave(entry: OpenFile) -> None:
    """Note that a store of this process has closed the file."""
    with _lock:
        entry.holders -= 1
        if not entry.holders:
            del _book[entry.identity]


def refuse_fork(path: str) -> None:
    """Raise ForkError if a parent of this process had the file open when it forked."""
    with _lock:
        entry = _book.get(_identity(path))
    if entry is not None:
        entry.refuse_fork(path)


def _identity(path: str) -> tuple[int, int]:
    found = os.stat(path)  # noqa: PTH116 - as above
    return found.st_dev, found.st_ino
