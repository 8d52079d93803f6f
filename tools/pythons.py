"""Run the tests on each other Python that is installed here; what is missing is skipped with a message.

Arguments are handed to pytest, as in `python tools/pythons.py tests/app tests/worker`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
VERSIONS: Final = ("3.12", "3.13", "3.14")
_PYENV: Final = Path.home() / ".pyenv" / "versions"


def main() -> int:
    """Test on each of them; the number of those that failed."""
    failed = 0
    for version in VERSIONS:
        found = interpreter(version)
        if found is None:
            print(f"Python {version}: skipped, there is no python{version} on the PATH or under pyenv", flush=True)
            continue
        code = run_tests(found, sys.argv[1:])
        print(f"Python {version}: {'passed' if code == 0 else 'FAILED'} ({found})", flush=True)
        failed += code != 0
    return failed


def interpreter(version: str) -> str | None:
    """A program of this version: from pyenv, the newest of its kind, or from the PATH."""
    installed = sorted(_PYENV.glob(f"{version}.*/bin/python"), key=lambda path: path.parts[-3].split("."))
    return str(installed[-1]) if installed else shutil.which(f"python{version}")


def run_tests(python: str, words: list[str]) -> int:
    """Make an environment with the locked dependencies, and run pytest in it."""
    with tempfile.TemporaryDirectory(prefix="perdure-python-") as folder:
        Path(folder).chmod(0o755)  # as root, PostgreSQL is run by another user, who must reach its programs
        subprocess.run([python, "-m", "venv", folder], check=True)
        program = str(Path(folder) / "bin" / "python")
        pip = [program, "-m", "pip", "install", "--quiet"]
        lock = str(ROOT / "requirements" / "dev.txt")
        subprocess.run([*pip, "--require-hashes", "-r", lock], check=True, cwd=ROOT)
        subprocess.run([*pip, "--no-deps", "--no-build-isolation", "-e", str(ROOT)], check=True, cwd=ROOT)
        tests = [program, "-m", "pytest", "-n", "3", "--dist", "worksteal", *words]
        return subprocess.run(tests, check=False, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
