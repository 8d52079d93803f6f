"""Reads from a request what API handlers and pages need: the site, the caller, and a desk in the caller's name."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final, cast

from starlette.requests import Request

from perdure.operate.desk import Desk
from perdure.surfaces.access.caller import caller_of

if TYPE_CHECKING:
    from perdure.surfaces.server.site import Site

TIME_LIMIT: Final = timedelta(seconds=2)
"""How long a query of a page or the API may take; a list that has to look through jobs ends after 0.1 s."""

SITE: Final = "perdure.site"
"""The key of the ASGI scope that holds the site."""


def site_of(request: Request) -> Site:
    """The site that serves this request."""
    return cast("Site", request.scope[SITE])


def desk_of(request: Request) -> Desk:
    """A desk that acts in the caller's name, on a database that was opened before."""
    caller = caller_of(request.scope)
    return Desk(site_of(request).backing.opened(), caller.name, caller.source, time_limit=TIME_LIMIT)


def path_to(request: Request, path: str) -> str:
    """A path of the site as links write it: below the prefix that the site is mounted at."""
    return f"{request.scope.get('root_path', '')}{path}"
