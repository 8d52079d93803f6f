"""One virtual environment per peer, with pinned versions, made once and kept.

An environment is made again when its requirements or its Python change. A peer whose
environment cannot be made is left out, with the reason.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parent.parent
REQUIREMENTS = BENCHMARKS / "peers" / "requirements"
ENVIRONMENTS = BENCHMARKS / ".envs"
INSTALL_SECONDS = 600.0

Version = tuple[int, int]


class EnvironmentUnavailableError(Exception):
    """A peer's environment cannot be made here; the message says why."""


def python_of(peer: str, *, at_least: Version = (3, 11)) -> Path:
    """Return the interpreter of `peer`'s environment, making the environment if need be."""
    requirements = REQUIREMENTS / f"{peer}.txt"
    base = find_python(at_least)
    folder = ENVIRONMENTS / peer
    python = folder / "bin" / "python"
    stamp = folder / "made-from"
    wanted = f"{base} {hashlib.sha256(requirements.read_bytes()).hexdigest()}"
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    shutil.rmtree(folder, ignore_errors=True)
    _run(str(base), "-m", "venv", str(folder))
    _run(str(python), "-m", "pip", "install", "--quiet", "--requirement", str(requirements))
    stamp.write_text(wanted)
    return python


def find_python(at_least: Version) -> Path:
    """Return this interpreter if it is new enough, else another that is installed."""
    if sys.version_info[:2] >= at_least:
        return Path(sys.executable)
    for candidate in _other_pythons(at_least):
        if _is_python(candidate, at_least):
            return candidate
    wanted = ".".join(map(str, at_least))
    raise EnvironmentUnavailableError(f"needs Python {wanted} or newer, and none was found")


def _other_pythons(at_least: Version) -> list[Path]:
    major, minor = at_least
    names = [f"python{major}.{m}" for m in range(minor, minor + 4)]
    on_path = [Path(found) for name in names if (found := shutil.which(name))]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    return on_path + [found for name in names for found in sorted(pyenv.glob(f"versions/*/bin/{name}"))]


def _is_python(candidate: Path, at_least: Version) -> bool:
    check = f"import sys; sys.exit(sys.version_info[:2] < {at_least})"
    try:
        done = subprocess.run([candidate, "-c", check], capture_output=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _run(*command: str) -> None:
    try:
        subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=True)
    except subprocess.TimeoutExpired as error:
        raise EnvironmentUnavailableError("installing took too long") from error
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["no message"])[-1]
        raise EnvironmentUnavailableError(f"installing failed: {last}") from error
