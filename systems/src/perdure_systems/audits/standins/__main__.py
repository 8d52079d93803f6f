"""`python -m perdure_systems.audits.standins`."""

from __future__ import annotations

from perdure_systems.audits.standins.outside import main

if __name__ == "__main__":
    main()
