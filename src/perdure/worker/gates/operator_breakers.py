"""Reports breakers that an operator opened or closed: each worker does so when its jobs reach one."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from perdure.domain.gate import BreakerState, BreakerView
from perdure.events import BreakerClosed, BreakerOpened, Emitter


class OperatorBreakers:
    """Remembers when an operator last changed each breaker that jobs of this worker have reached."""

    def __init__(self, emitter: Emitter) -> None:
        self._emitter = emitter
        self._known: dict[str, datetime | None] = {}

    def notice(self, views: Iterable[BreakerView]) -> None:
        """Report the breakers that an operator changed since the last look; one first seen closed is not reported."""
        for view in views:
            touched = view.changed_at if view.by is not None else None
            is_first = view.name not in self._known
            if touched is not None and touched != self._known.get(view.name):
                self._emit_change(view, is_first=is_first)
            self._known[view.name] = touched

    def _emit_change(self, view: BreakerView, *, is_first: bool) -> None:
        because = f"by {view.by}{f': {view.note}' if view.note else ''}"
        if view.state is BreakerState.OPEN:
            until = None if view.until is None else view.until.isoformat(timespec="seconds")
            self._emitter.emit(BreakerOpened(view.name, until, because))
        elif not is_first:
            self._emitter.emit(BreakerClosed(view.name, because))
