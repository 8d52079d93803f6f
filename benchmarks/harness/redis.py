"""A Redis server for one benchmark run, if the machine has one installed.

It writes its log to disk at every command, so that a job is as durable there as in the
databases it is compared with.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

START_SECONDS = 10.0


def redis_installed() -> bool:
    """Whether a `redis-server` can be started here."""
    return shutil.which("redis-server") is not None


@contextmanager
def redis_server() -> Iterator[str]:
    """Yield the URL of a fresh, durable server on the loopback interface."""
    binary = shutil.which("redis-server")
    if binary is None:
        raise FileNotFoundError("redis-server is not installed")
    port = _free_port()
    with tempfile.TemporaryDirectory(prefix="redis-") as folder:
        options = {
            "bind": "127.0.0.1",
            "port": str(port),
            "dir": folder,
            "save": "",
            "appendonly": "yes",
            "appendfsync": "always",
        }
        command = [binary, *(word for name, value in options.items() for word in (f"--{name}", value))]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _await_port(port)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            server.terminate()
            server.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _await_port(port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return
