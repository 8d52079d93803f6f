"""Errors as pages: what is wrong, what to do, and the matching status."""

from __future__ import annotations

import logging
from typing import Final

from starlette.responses import Response

from perdure.errors import (
    ArgumentError,
    ConflictError,
    NotFoundError,
    PerdureError,
    SchemaError,
    StoreError,
    StoreRefused,
)
from perdure.surfaces.desk.visit import Visit

_STATUS: Final[tuple[tuple[type[PerdureError], int, str, str], ...]] = (
    (NotFoundError, 404, "Not found", "It may have been deleted or purged. Check the name, or search for it."),
    (ArgumentError, 400, "Cannot be read", "Correct the input, and try again."),
    (ConflictError, 409, "Not possible now", "Another operator may have acted. Look at it again, then decide."),
    (SchemaError, 503, "Schema does not fit", "Run `perdure migrate`, or use the release that made this database."),
    (StoreRefused, 409, "The database refused", "It may be a standby, full, or without rights for this user."),
    (StoreError, 503, "No answer from the database", "The page comes back by itself once the database answers."),
    (PerdureError, 500, "Failed", "Run `perdure doctor` to check the database."),
)


_log = logging.getLogger("perdure.desk")


async def show_failure(visit: Visit, error: Exception) -> Response:
    """The page for an error; an open page that refreshes gets only the status.

    A defect of the desk is logged with its traceback; the page does not show it.
    """
    if not isinstance(error, PerdureError):
        path = visit.request.url.path
        _log.error("the page %s failed", path, exc_info=error)
        return await visit.page(
            "pages/problem.html",
            title="Failed",
            status=500,
            problem="The desk failed on this page.",
            advice="The log of the desk has the traceback. A command may have run: check before you repeat it.",
        )
    status, title, advice = next((s, t, a) for kind, s, t, a in _STATUS if isinstance(error, kind))
    problem = str(error)
    if visit.is_posted and isinstance(error, StoreError) and not isinstance(error, StoreRefused):
        advice = "The command may have run or not: once the database answers, check before you repeat it."
    if isinstance(error, NotFoundError):  # other messages may begin with the name of a field
        problem = problem[:1].upper() + problem[1:]
    response = await visit.page("pages/problem.html", title=title, status=status, problem=problem, advice=advice)
    if isinstance(error, StoreError):
        response.headers["Perdure-Away"] = "database"
    return response
