"""Another project in its own folder, tested by its own pytest."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

PATIENCE: Final = 120


def run_pytest(folder: Path, *options: str) -> tuple[dict[str, int], str]:
    """Run pytest in a folder: how many tests passed, failed and so on, and what it wrote. Warnings are errors."""
    command = [
        sys.executable,
        "-W",
        "error",
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:hypothesispytest",
        "-p",
        "no:schemathesis",
    ]
    ran = subprocess.run(
        [*command, *options], cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    said = ran.stdout + ran.stderr
    return {what: int(count) for count, what in re.findall(r"(\d+) (passed|failed|errors?|skipped)", said)}, said
