"""The systems under load: ten times what the originals named. `python -m benchmarks.systems` runs all of them."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

SYSTEMS: Final = ("notifications", "flags", "authorities", "audits")


def main() -> None:
    """Run one after the other, and fail if one of them does."""
    commands = [[sys.executable, "-m", f"benchmarks.systems.{name}"] for name in SYSTEMS]
    sys.exit(max(subprocess.run(command, check=False).returncode for command in commands))


if __name__ == "__main__":
    main()
