"""The leases as the database shows them while it all happens."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import apsw
import psycopg

from perdure.engines.shared.database.sql_files import fill_names

Seen = tuple[str, int, int, bool]  # job, token, worker, whether that worker is alive
_EVERY = 0.02
_LOOK = """
    SELECT CAST(l.job_id AS text), l.token, l.worker_id, w.id IS NOT NULL AND w.dead_at IS NULL
    FROM {lease} l LEFT JOIN {worker} w ON w.id = l.worker_id
"""


class LeaseWatch:
    """Judges one picture of the leases after the other."""

    def __init__(self) -> None:
        self.pictures = 0
        self.newest: dict[str, int] = {}
        self.faults: list[str] = []
        self._holder: dict[tuple[str, int], int] = {}

    def see(self, picture: Sequence[Seen]) -> None:
        """Take in all leases that there were at one instant."""
        self.pictures += 1
        live: dict[str, int] = {}
        for job, token, worker, alive in picture:
            if alive and job in live:
                self.faults.append(f"job {job} has two live leases, tokens {live[job]} and {token}")
            if alive:
                live[job] = token
            if token < self.newest.get(job, 0):
                self.faults.append(f"job {job} went back from token {self.newest[job]} to {token}")
            self.newest[job] = max(token, self.newest.get(job, 0))
            if self._holder.setdefault((job, token), worker) != worker:
                self.faults.append(f"job {job} under token {token} passed from one worker to another")


class LeaseSampler:
    """Takes pictures, many a second, from a thread and a connection of its own; a database that is away is missed."""

    def __init__(self, url: str) -> None:
        self.watch = LeaseWatch()
        self._url = url
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def stop(self) -> LeaseWatch:
        """Take no more pictures; what was seen."""
        self._ended.set()
        self._thread.join(30)
        return self.watch

    def _sample(self) -> None:
        camera: _Camera | None = None
        while not self._ended.wait(_EVERY):
            try:
                camera = camera or _Camera(self._url)
                self.watch.see(camera.look())
            except (psycopg.Error, apsw.Error):
                if camera is not None:
                    camera.close()
                camera = None
        if camera is not None:
            camera.close()


class _Camera:
    """A connection that looks at the leases."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._link: apsw.Connection | psycopg.Connection
        if parts.scheme == "sqlite":
            self._link = apsw.Connection(parts.path[1:])
            self._link.set_busy_timeout(1_000)
            return
        options = dict(parse_qsl(parts.query))
        schema = options.pop("schema", "perdure")
        plain = f"{url.partition('?')[0]}?{urlencode(options)}"
        self._link = psycopg.connect(plain, autocommit=True, options=f"-c search_path={schema}")

    def look(self) -> Sequence[Seen]:
        """All leases of this instant."""
        rows: Any
        if isinstance(self._link, apsw.Connection):
            rows = self._link.execute(fill_names(_LOOK, lambda name: f"perdure_{name}")).fetchall()
        else:
            rows = self._link.execute(fill_names(_LOOK, str).encode()).fetchall()
        seen: list[Seen] = rows
        return seen

    def close(self) -> None:
        """Look no more."""
        self._link.close()
