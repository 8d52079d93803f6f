"""The outside world, on this machine, for tests and the demo."""

from __future__ import annotations

from perdure_systems.audits.standins.outside import Outside, QuickInstruments

__all__ = ["Outside", "QuickInstruments"]
