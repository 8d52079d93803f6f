"""Why a handler's transaction cannot be committed: the same text on both engines."""

from __future__ import annotations

from typing import Final

ABANDONED: Final = "the attempt was abandoned, and its transaction was rolled back"
ENDED_BY_HANDLER: Final = "the handler ended its transaction by itself: leave COMMIT and ROLLBACK to the worker"
