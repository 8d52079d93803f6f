"""Who the peers are, and how each is run: a process in an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass

from benchmarks.harness.contestant import Engine
from benchmarks.harness.environments import BENCHMARKS, EnvironmentUnavailableError, Version, python_of
from benchmarks.harness.measure import Outcome
from benchmarks.harness.postgres import postgres_server
from benchmarks.harness.redis import redis_installed, redis_server

PATIENCE = 400.0


@dataclass(frozen=True, slots=True)
class Peer:
    """Where a peer keeps its jobs, and the oldest Python it runs on."""

    engine: Engine
    python: Version = (3, 11)


PEERS: dict[str, Peer] = {
    "pgqueuer": Peer(Engine.POSTGRES),
    "awa": Peer(Engine.POSTGRES),
    "chancy": Peer(Engine.POSTGRES),
    "oban": Peer(Engine.POSTGRES, python=(3, 12)),
    "procrastinate": Peer(Engine.POSTGRES),
    "flexiq": Peer(Engine.SQLITE),
    "huey": Peer(Engine.SQLITE),
    "dramatiq": Peer(Engine.REDIS),
    "celery": Peer(Engine.REDIS),
}


class Servers:
    """The servers of one run, each started when first asked for."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._urls: dict[Engine, str] = {}

    def url(self, engine: Engine) -> str:
        """Return where `engine` can be reached: a URL, or a folder for SQLite."""
        if engine not in self._urls:
            starts: dict[Engine, Callable[[], AbstractContextManager[str]]] = {
                Engine.POSTGRES: postgres_server,
                Engine.SQLITE: lambda: tempfile.TemporaryDirectory(prefix="sqlite-"),
                Engine.REDIS: redis_server,
            }
            self._urls[engine] = self._stack.enter_context(starts[engine]())
        return self._urls[engine]


@contextmanager
def servers() -> Iterator[Servers]:
    """Yield servers that all end with the context."""
    with ExitStack() as stack:
        yield Servers(stack)


def measure_peers(
    names: Sequence[str], *, scale: float = 1.0, repeats: int = 1, tell: Callable[[str], object] = lambda _: None
) -> list[Outcome]:
    """Measure the named peers one after the other; one that cannot run says why."""
    outcomes = []
    with servers() as running:
        for name in names:
            tell(f"measuring {name} ...")
            outcomes.append(measure_peer(name, running, scale=scale, repeats=repeats))
    return outcomes


def measure_peer(name: str, running: Servers, *, scale: float = 1.0, repeats: int = 1) -> Outcome:
    """Measure one peer in its own environment, or return the reason why not."""
    peer = PEERS[name]
    if peer.engine is Engine.REDIS and not redis_installed():
        return _skipped(name, "no redis-server is installed")
    try:
        python = python_of(name, at_least=peer.python)
        done = subprocess.run(
            [
                *(python, "-m", f"benchmarks.peers.{name}", running.url(peer.engine)),
                *("--scale", str(scale), "--repeats", str(repeats)),
            ],
            cwd=BENCHMARKS.parent,
            env={**os.environ, "PYTHONPATH": str(BENCHMARKS.parent)},
            capture_output=True,
            text=True,
            timeout=PATIENCE * repeats,
            check=True,
        )
    except EnvironmentUnavailableError as error:
        return _skipped(name, str(error))
    except subprocess.TimeoutExpired:
        return _skipped(name, f"not done after {PATIENCE * repeats:.0f} s")
    except subprocess.CalledProcessError as error:
        sys.stderr.write(error.stderr)
        last = (error.stderr.strip().splitlines() or ["no message"])[-1]
        return _skipped(name, f"failed: {last}")
    return Outcome.from_json(done.stdout)


def _skipped(name: str, reason: str) -> Outcome:
    return Outcome(name=name, engine=PEERS[name].engine, skipped=reason)
