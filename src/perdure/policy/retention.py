"""How long the store keeps records that no setting of retention covers."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

DEAD_WORKERS_KEPT: Final = timedelta(days=1)
"""Records of dead workers, and the revoked claims that no worker asked for."""

NOMINAL_TIMES_KEPT: Final = timedelta(days=90)
"""Handled times of schedules: a backfill that is repeated later would enqueue their jobs twice."""

BULKS_KEPT: Final = timedelta(days=90)
"""Bulk commands that have ended."""
