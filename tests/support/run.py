"""What a whole test run does once for all its tests, because it takes processor time from all of them.

Test files live in memory where there is room: a database of its own for each test means gigabytes written, and no test
is about a disk that loses power. The processes of one run share the rewriting of assertions, and none collects garbage
among the thousands of tests that it holds until it ends.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from _pytest.assertion.rewrite import PYC_TAIL, _rewrite_test, _write_pyc, assertstate_key, get_cache_dir

_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - every program of a run makes a folder of its own in it
_ROOM: Final = 6 * 2**30  # bytes: four servers, browsers, and the files of tests that run or have failed


def keep_files_in_memory(memory: Path = _MEMORY, room: int = _ROOM) -> None:
    """Make temporary files in memory, unless TMPDIR names a place, there is little room, or programs may not run there.

    The processes that tests start inherit this.
    """
    if "TMPDIR" in os.environ or not memory.is_dir() or shutil.disk_usage(memory).free < room:
        return
    if not os.statvfs(memory).f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = str(memory)
        tempfile.tempdir = None  # it was found before, and is to be found anew


def rewrite_a_share(config: pytest.Config) -> None:
    """Rewrite the assertions of some test files, if this is one of several processes; the others do the other files.

    Each of them needs all files. Without this, each would rewrite all, at the same time.
    """
    place: dict[str, object] | None = getattr(config, "workerinput", None)
    if place is None or sys.dont_write_bytecode:
        return
    number, count = int(str(place["workerid"]).removeprefix("gw")), int(str(place["workercount"]))
    for file in _rewritten_files(config)[number::count]:
        cached = get_cache_dir(file) / (file.stem + PYC_TAIL)
        if not cached.exists():  # one that is out of date is noticed when it is loaded
            cached.parent.mkdir(exist_ok=True)
            source_hash, code = _rewrite_test(file, config)
            _write_pyc(config.stash[assertstate_key], code, source_hash, cached)


@contextmanager
def spared_garbage() -> Iterator[None]:
    """Collect no garbage during the block, and never look again at what it has made."""
    gc.disable()
    try:
        yield
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def _rewritten_files(config: pytest.Config) -> list[Path]:
    """The test files among the arguments of the run, and our library: pytest rewrites it, because it has a plugin."""
    given = [config.invocation_params.dir / argument.partition("::")[0] for argument in config.args]
    tests = [file for path in given for file in (path.rglob("*.py") if path.is_dir() else [path])]
    tests = [file for file in tests if file.name == "conftest.py" or file.name.startswith("test_")]
    tests = [file for file in tests if file.is_file()]  # pytest says what is not there
    return sorted({*tests, *(config.rootpath / "src").rglob("*.py")})
