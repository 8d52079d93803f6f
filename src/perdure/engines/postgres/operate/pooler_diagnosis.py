"""Detects a pooler between us and the server, and whether notifications arrive."""

from __future__ import annotations

from typing import Final

import psycopg

from perdure.engines.postgres.database.connections import Server
from perdure.engines.postgres.database.faults import translate
from perdure.engines.postgres.database.sessions import Sessions
from perdure.engines.postgres.fleet.signals import SignalPart
from perdure.errors import PerdureError
from perdure.storage.operate.diagnosis import Finding, fine, warning

_CHECK: Final = "pooler"
_SEEN: Final = {
    Sessions.DIRECT: "none, connected to the server directly",
    Sessions.POOLED: "one that keeps a session for each connection (session mode)",
    Sessions.SHARED: "one that shares sessions (transaction mode): statements are not prepared",
}
_POLLS: Final = "workers learn of new jobs by polling, within a second"
_DIRECT_URL: Final = "set PERDURE_LISTEN_URL to a URL that leads to the same database without the pooler"


class PoolerDiagnosis:
    """Tells how connections reach the server, and tries a notification where they may not arrive."""

    def __init__(self, server: Server, signals: SignalPart, listening: Server | None) -> None:
        self._server = server
        self._signals = signals
        self._listening_at = listening

    async def diagnose(self) -> Finding:
        """Name the pooler, and what does not work because of it."""
        sessions = self._server.sessions
        seen = _SEEN.get(sessions, sessions.value)
        if self._listening_at is None:
            if sessions is Sessions.SHARED:
                return warning(_CHECK, f"{seen}; {_POLLS}", f"to start jobs at once, {_DIRECT_URL}")
            return fine(_CHECK, seen)
        return await self._listening(seen, self._listening_at)

    async def _listening(self, seen: str, listening: Server) -> Finding:
        try:
            is_heard = await self._signals.receives_notifications()
        except (psycopg.Error, OSError, PerdureError) as error:
            said = error if isinstance(error, PerdureError) else translate(error, listening.secret)
            return warning(_CHECK, f"{seen}; the listen URL fails: {said}; {_POLLS}", _DIRECT_URL)
        if is_heard:
            return fine(_CHECK, f"{seen}; notifications arrive by the listen URL")
        way = "leads through a transaction pooler too" if listening.shares_sessions else "hears no notification"
        return warning(_CHECK, f"{seen}; the listen URL {way}; {_POLLS}", _DIRECT_URL)
