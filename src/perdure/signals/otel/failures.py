"""Failures of the program's tracing: its sampler, id generator and span processors run inside our calls.

A job must not fail because its span could not be made or exported, so these errors end here.
"""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Final

_log: Final = logging.getLogger("perdure.otel")


class Failures(AbstractContextManager[None]):
    """Around calls of the SDK: `with failures: span.end()`. Logs the first error of each type."""

    def __init__(self) -> None:
        self._logged: set[type[BaseException]] = set()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        """Swallow an error, and log it."""
        if not isinstance(error, Exception):
            return False
        self.log(error)
        return True

    def log(self, error: Exception) -> None:
        """Log an error, if it is the first of its type."""
        if type(error) not in self._logged:
            self._logged.add(type(error))
            _log.warning("tracing failed; jobs go on, and errors of this type are told once", exc_info=error)
