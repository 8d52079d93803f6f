"""Everything: perdure's promises about speed, the desk, the systems under load, the race with peers: `make bench`."""

from __future__ import annotations

import subprocess
import sys


def main() -> None:
    """Run all parts, and fail if one of them does."""
    modules = ("benchmarks.ours", "benchmarks.desk", "benchmarks.systems", "benchmarks.race")
    codes = [subprocess.run([sys.executable, "-m", module], check=False).returncode for module in modules]
    sys.exit(max(codes))


if __name__ == "__main__":
    main()
