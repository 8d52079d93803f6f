"""Everything: perdure's promises about speed, then the race with its peers. `make bench` runs this, in 20 minutes."""

from __future__ import annotations

import subprocess
import sys


def main() -> None:
    """Run both halves, and fail if one of them does."""
    halves = [[sys.executable, "-m", module] for module in ("benchmarks.ours", "benchmarks.race")]
    codes = [subprocess.run(command, check=False).returncode for command in halves]
    sys.exit(max(codes))


if __name__ == "__main__":
    main()
