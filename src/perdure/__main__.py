"""`python -m perdure` runs the command line; supervisors start their workers this way."""

from __future__ import annotations

from perdure.lifecycle.process.supervisor import follow_supervisor
from perdure.surfaces.cli import main

if __name__ == "__main__":
    follow_supervisor()
    main()
