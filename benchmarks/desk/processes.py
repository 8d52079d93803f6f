"""The processes that are measured: a desk as `perdure desk` serves it, a worker at full speed, a cold command line."""

from __future__ import annotations

import os
import re
import resource
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks.harness.ledger import Ledger, new_ledger

_PATIENCE: Final = 60.0
_CLOCK_OF_PROCESS: Final = 2  # as Linux numbers the clocks of other processes
_ADDRESS: Final = re.compile(r"http://[\w.]+:\d+")


class Process:
    """A process, and what it uses."""

    def __init__(self, popen: subprocess.Popen[str], address: str = "") -> None:
        self.pid = popen.pid
        self.address = address

    @property
    def memory(self) -> float:
        """Megabytes that it has in memory."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024

    @property
    def cpu(self) -> float:
        """Seconds of processor time so far: a clock that other programs on the machine change little."""
        return time.clock_gettime((~self.pid << 3) | _CLOCK_OF_PROCESS)


@contextmanager
def desk_process(url: str) -> Iterator[Process]:
    """A desk on a free port of loopback."""
    command = [sys.executable, "-m", "perdure", "desk", "--url", url, "--port", "0", "--no-open", "--json"]
    with _running(command, subprocess.PIPE) as popen:
        yield Process(popen, _address_told(popen))


@contextmanager
def draining_worker(url: str, folder: Path) -> Iterator[Ledger]:
    """A worker that runs no-op jobs as fast as it can, and never runs out of them; the ledger counts their starts."""
    with new_ledger(folder, 1) as ledger:
        command = [sys.executable, "-m", "benchmarks.desk.draining", url, str(ledger.path)]
        with _running(command):
            deadline = time.monotonic() + _PATIENCE
            while not ledger.started():
                if time.monotonic() > deadline:
                    raise TimeoutError("the worker did not start a job")
                time.sleep(0.1)
            yield ledger


def cold_list(url: str, folder: Path) -> tuple[float, float]:
    """Seconds and processor seconds that `perdure jobs list` takes, with a new process and its imports.

    Bytecode is kept in the folder, as an installed package has it.
    """
    kept = {"PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | kept
    begun, used = time.perf_counter(), _processor_seconds()
    command = [sys.executable, "-m", "perdure", "jobs", "list", "--url", url]
    subprocess.run(command, check=True, capture_output=True, env=environment)
    return time.perf_counter() - begun, _processor_seconds() - used


def _processor_seconds() -> float:
    """Of all processes that this one started and that ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@contextmanager
def _running(command: list[str], stderr: int | None = subprocess.DEVNULL) -> Iterator[subprocess.Popen[str]]:
    popen = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr, text=True)
    try:
        yield popen
    finally:
        popen.terminate()
        try:
            popen.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            popen.kill()
            popen.wait()


def _address_told(popen: subprocess.Popen[str]) -> str:
    assert popen.stderr is not None
    deadline, said = time.monotonic() + _PATIENCE, ""
    while time.monotonic() < deadline and popen.poll() is None:
        if select.select([popen.stderr], [], [], 0.2)[0]:
            said += popen.stderr.readline()
            if found := _ADDRESS.search(said):
                return found[0]
    raise TimeoutError(f"the desk did not tell its address: {said[-2000:]}")
