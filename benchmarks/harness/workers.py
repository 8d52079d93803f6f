"""The worker processes of a phase: started together, held at the gate, always ended."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from benchmarks.harness.contestant import Purpose
    from benchmarks.harness.ledger import Ledger

START_SECONDS = 30.0
STOP_SECONDS = 5.0


class WorkerDiedError(Exception):
    """A worker process ended while its phase still needed it."""


class Crew:
    """As many processes of `python -m module worker` as a phase wants."""

    def __init__(self, module: str, url: str, ledger_path: Path, purpose: Purpose, workers: int) -> None:
        """Describe the crew; the processes start on entering the context."""
        self._command = [sys.executable, "-m", module, "worker", url, str(ledger_path), purpose]
        self._log_path = ledger_path.with_name("workers.log")
        self._workers = workers
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        """Start the processes; what they write goes to one log."""
        with self._log_path.open("wb") as log:
            for worker in range(self._workers):
                process = subprocess.Popen(
                    [*self._command, str(worker)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
                self._processes.append(process)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the processes, by force if they do not end themselves."""
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def assemble(self, ledger: Ledger) -> None:
        """Wait until every worker stands at the gate, then open it."""
        deadline = time.monotonic() + START_SECONDS
        while ledger.ready() < self._workers:
            self.check()
            if time.monotonic() > deadline:
                raise WorkerDiedError(f"a worker was not set up in time\n{self.words()}")
            time.sleep(0.005)
        ledger.open_gate()

    def check(self) -> None:
        """Raise, with the worker's last words, if one has ended."""
        for process in self._processes:
            if process.poll() is not None:
                raise WorkerDiedError(f"a worker ended with {process.returncode}\n{self.words()}")

    def words(self) -> str:
        """Return the end of what the workers wrote."""
        return self._log_path.read_text(errors="replace")[-4000:]
