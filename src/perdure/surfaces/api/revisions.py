"""Versions against concurrent edits: ETags, and the checks of If-Match and `revision`.

The version of a resource is a digest of what operators see of it. A command for another version than the current one is
refused: with 412 if the version came as If-Match, with 409 if it came as `revision` in the body. One desk runs the
commands on a resource one after the other, so of several commands for the same version only the first succeeds. Between
the check and the command, another desk or a worker may still change the resource; the store then refuses a command that
its state does not allow (409), so that nothing is done twice.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import Final
from weakref import WeakValueDictionary

from starlette.requests import Request

from perdure.domain.jobs.job import JobView
from perdure.domain.schedule import ScheduleView
from perdure.errors import ConflictError
from perdure.surfaces.api.encoding import encoded
from perdure.surfaces.api.problems import PreconditionFailed

_ANY: Final = "*"


class Turns:
    """One lock per resource in this desk, by its name in the path; for a job by its id too."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[tuple[str, ...], asyncio.Lock] = WeakValueDictionary()

    def of(self, *thing: str) -> asyncio.Lock:
        """The lock of this resource; hold it from the check of its version to the end of the command."""
        return self._locks.setdefault(thing, asyncio.Lock())


def job_etag(job: JobView) -> str:
    """The version of a job."""
    return _etag(job)


def schedule_etag(view: ScheduleView) -> str:
    """The version of a schedule: of its definition and its pause, not of its passing times."""
    return _etag([view.schedule, view.origin, view.version, view.paused_at, view.paused_until])


def check_version(request: Request, revision: str | None, etag: str | None, what: str) -> None:
    """Refuse a command for another version; `etag` None: the resource does not exist.

    `If-None-Match: *` means that the resource must not exist yet.
    """
    if (wanted := _listed(request, "if-match")) and (etag is None or not wanted & {_ANY, etag}):
        raise PreconditionFailed(what)
    if (unwanted := _listed(request, "if-none-match")) and etag is not None and unwanted & {_ANY, etag}:
        raise PreconditionFailed(what)
    if revision is not None and (etag is None or revision.strip('"') != etag.strip('"')):
        raise ConflictError(
            f"{what} has changed since you read it: read it again, then decide whether to repeat the command"
        )


def _listed(request: Request, header: str) -> set[str]:
    return {one.strip() for value in request.headers.getlist(header) for one in value.split(",")}


def _etag(value: object) -> str:
    return f'"{hashlib.blake2b(encoded(value), digest_size=8).hexdigest()}"'
