"""A file that two threads make at once."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from typing import Any, Final

import pytest

from perdure.engines.sqlite.database.drivers import DRIVERS
from perdure.engines.sqlite.store import SqliteStore

SOON: Final = 10.0
# Where SQLite locks a file for as long as it reads from its log, asked for by another process.
TAKE_THE_LOCK: Final = """
import fcntl, os, sys
fcntl.lockf(os.open(sys.argv[1], os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB, 512, 0x40000000)
"""


def what_a_thief_says(path: str) -> bytes:
    return subprocess.run([sys.executable, "-c", TAKE_THE_LOCK, path], capture_output=True, check=False).stderr


@pytest.mark.parametrize("driver", DRIVERS)
async def test_who_makes_the_file_leaves_the_locks_to_who_found_it(
    path: str, driver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without them the next process that closes the file deletes the log, and all that is written to it is lost."""
    open_for_good = os.open
    made, found, over = threading.Event(), threading.Event(), threading.Event()

    def open_slowly(name: Any, flags: int, *mode: int) -> int:
        descriptor = open_for_good(name, flags, *mode)
        if name == path:
            made.set()
            found.wait(0.5)
        return descriptor

    async def find_it() -> None:
        store = SqliteStore(path, driver=driver)
        await store.open()
        found.set()
        await asyncio.to_thread(over.wait)
        await store.close()

    def find_it_once_made() -> None:
        made.wait(SOON)
        asyncio.run(find_it())

    monkeypatch.setattr(os, "open", open_slowly)
    finder = threading.Thread(target=find_it_once_made)
    finder.start()
    maker = SqliteStore(path, driver=driver)
    await maker.open()
    try:
        assert await asyncio.to_thread(found.wait, SOON)
        assert b"BlockingIOError" in await asyncio.to_thread(what_a_thief_says, path)
    finally:
        over.set()
        await asyncio.to_thread(finder.join)
        await maker.close()
