"""Whether the process runs and can serve, for load balancers and orchestrators (E10).

`/healthz` answers as long as the process runs, even without its database. `/readyz` checks the database, workers,
queues, failures and the disk, and runs `HealthSettings.checks`, at most once a second. It answers 503 if the database
is unusable or a check fails, and 200 with warnings for problems that need a person but no restart. Neither needs a
token, so neither names a job. Error texts may name the database, so only callers on this machine get them.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from perdure.clock import Clock, SystemClock
from perdure.domain.duration import parse_duration
from perdure.domain.jobs.states import JobState
from perdure.errors import StoreError
from perdure.operate.views.statistics import read_statistics
from perdure.storage.port import Store
from perdure.surfaces.access.answers import problem
from perdure.surfaces.access.requests.visit import read_visit
from perdure.surfaces.access.settings import AccessSettings
from perdure.surfaces.server.backing import Backing
from perdure.surfaces.server.health_settings import Check, Condition, HealthSettings

_ANSWER_FRESH_SECONDS: Final = 1.0  # seconds for which an answer is reused
_QUERIES_LIMIT_SECONDS: Final = 2.0  # seconds for all queries together
_PROXIES_OF_NOBODY: Final = AccessSettings()
_ELSEWHERE: Final = "failed: ask on the machine of the desk why"


class Readiness(Struct, frozen=True):
    """All checks; `status` is the worst of them."""

    status: Condition
    checks: tuple[Check, ...]


class _Error(Check, frozen=True):
    """A check whose text is that of an error."""


class Health:
    """Answers `/healthz` and `/readyz`."""

    def __init__(self, backing: Backing, settings: HealthSettings, clock: Clock | None = None) -> None:
        self._backing = backing
        self._settings = settings
        self._clock = clock or SystemClock()
        self._asking = asyncio.Lock()
        self._last: tuple[float, Readiness] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        request = Request(scope, receive)
        if request.method not in {"GET", "HEAD"}:
            detail = f"{request.method} is not possible here, only GET, HEAD"
            response = problem(405, "Method Not Allowed", detail, {"allow": "GET, HEAD"})
        elif request.url.path.endswith("/healthz"):
            response = _answer({"status": Condition.OK}, 200)
        else:
            readiness = await self.readiness()
            shown = readiness if read_visit(scope, _PROXIES_OF_NOBODY).is_local else _for_others(readiness)
            response = _answer(shown, 503 if readiness.status is Condition.FAILED else 200)
        await response(scope, receive, send)

    async def readiness(self) -> Readiness:
        """Run all checks, unless the last run was within a second."""
        async with self._asking:
            if self._last is None or self._clock.monotonic() - self._last[0] >= _ANSWER_FRESH_SECONDS:
                self._last = self._clock.monotonic(), await self._look()
            return self._last[1]

    async def _look(self) -> Readiness:
        checks = [*self._disk(), *[await _looked(look) for look in self._settings.checks]]
        try:
            async with asyncio.timeout(_QUERIES_LIMIT_SECONDS):
                store = await self._backing.store()
                looks = (self._database, self._workers, self._queues, self._failures)
                checks = [*[await look(store) for look in looks], *checks]
        except StoreError as error:
            checks.insert(0, _Error("database", Condition.FAILED, str(error)))
        except TimeoutError:
            checks.insert(
                0, Check("database", Condition.FAILED, f"does not answer within {_QUERIES_LIMIT_SECONDS:g} s")
            )
        return Readiness(max((check.status for check in checks), key=list(Condition).index), tuple(checks))

    async def _database(self, store: Store) -> Check:
        before = self._clock.monotonic()
        await store.workers()  # not `now()`: on SQLite that reads this machine's clock and no database
        return Check("database", Condition.OK, f"answers within {(self._clock.monotonic() - before) * 1_000:.1f} ms")

    async def _workers(self, store: Store) -> Check:
        now = await store.now()
        silence = parse_duration("silence", self._settings.silence)
        living = [one for one in await store.workers() if one.dead_at is None and now - one.beat_at <= silence]
        if not living:
            return Check("workers", Condition.WARNING, "none alive")
        return Check("workers", Condition.OK, f"{len(living)} alive, {sum(one.running for one in living)} jobs running")

    async def _queues(self, store: Store) -> Check:
        ready = {count.queue: count for count in await store.counts() if count.state is JobState.READY}
        deep = [count for count in ready.values() if count.jobs > self._settings.depth]
        if not deep:
            return Check("queues", Condition.OK, f"no queue has more than {self._settings.depth} ready jobs")
        seen = ", ".join(f"{count.queue!r} has {count.jobs:,}{'+' if count.capped else ''}" for count in deep)
        return Check("queues", Condition.WARNING, f"ready jobs, more than {self._settings.depth}: {seen}")

    async def _failures(self, store: Store) -> Check:
        [group] = (await read_statistics(store, "1h", points=False)).groups
        failed = group.total.failed
        status = Condition.OK if failed <= self._settings.failures else Condition.WARNING
        return Check("failures", status, f"{failed:,} attempts failed in the last hour")

    def _disk(self) -> list[Check]:
        parts = urlsplit(self._backing.url)
        if parts.scheme != "sqlite":
            return []
        folder = os.path.dirname(os.path.abspath(unquote(parts.path[1:])))  # noqa: PTH100, PTH120 - a file need not exist
        try:
            free = shutil.disk_usage(folder).free // 1_000_000
        except OSError as error:
            return [_Error("disk", Condition.FAILED, f"{folder} cannot be read: {error.strerror}")]
        status = Condition.OK if free >= self._settings.disk else Condition.WARNING
        return [Check("disk", status, f"{free:,} MB free")]


async def _looked(look: Callable[[], Awaitable[Check]]) -> Check:
    """Run one of the user's checks. If it raises or takes too long, it has failed; the others are still shown."""
    name = getattr(look, "__name__", "check")
    try:
        async with asyncio.timeout(_QUERIES_LIMIT_SECONDS):
            return await look()
    except TimeoutError:
        return Check(name, Condition.FAILED, f"does not answer within {_QUERIES_LIMIT_SECONDS:g} s")
    except Exception as error:  # noqa: BLE001 - the probe gets an answer even if a check fails
        return _Error(name, Condition.FAILED, f"{type(error).__name__}: {error}")


def _for_others(readiness: Readiness) -> Readiness:
    """The result for callers on other machines: without the texts of errors."""
    checks = (replace(check, seen=_ELSEWHERE) if isinstance(check, _Error) else check for check in readiness.checks)
    return Readiness(readiness.status, tuple(checks))


def _answer(document: object, status: int) -> Response:
    return Response(
        msgspec.json.encode(document),
        status_code=status,
        media_type="application/json",
        headers={"cache-control": "no-store"},
    )
