"""When a stored time comes from a clock that was set back since."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

CLOCK_SLACK: Final = timedelta(minutes=1)
"""A date farther ahead than this comes from a clock that was set back since."""
