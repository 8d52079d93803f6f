"""What API handlers and pages need from a request: the site, the caller, and a desk in the caller's name."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final, cast

from starlette.requests import Request

from perdure.domain.operate.access import Scope
from perdure.errors import StoreError
from perdure.operate.desk import Desk
from perdure.storage.asked_once import asked_once
from perdure.surfaces.access.answers import Refused
from perdure.surfaces.access.caller import caller_of
from perdure.surfaces.access.requests.visit import read_visit
from perdure.surfaces.server.live import Check

if TYPE_CHECKING:
    from perdure.surfaces.server.site import Site

QUERY_TIME_LIMIT: Final = timedelta(seconds=2)
"""How long a query of a page or the API may take; a list that must scan jobs stops after 0.1 s."""

_LOOKS: Final = frozenset({"GET", "HEAD"})

SITE: Final = "perdure.site"
"""The key of the ASGI scope that holds the site."""


def site_of(request: Request) -> Site:
    """The site that serves this request."""
    return cast("Site", request.scope[SITE])


def desk_of(request: Request) -> Desk:
    """A desk that acts in the caller's name; the database must be open already.

    During a request that changes nothing, the same query reaches the database only once.
    """
    caller, store = caller_of(request.scope), site_of(request).backing.opened()
    look = asked_once(store) if request.method in _LOOKS else store
    return Desk(look, caller.name, caller.source, time_limit=QUERY_TIME_LIMIT)


def path_to(request: Request, path: str) -> str:
    """A path of the site for links: below the prefix at which the site is mounted."""
    return f"{request.scope.get('root_path', '')}{path}"


def access_of(request: Request) -> Check:
    """Whether the caller may still read: streams outlive the check at their start."""
    access = site_of(request).access

    async def may_read() -> bool:
        try:
            caller = await access.caller(read_visit(request.scope, access.settings))
        except Refused:
            return False
        except StoreError:
            return True  # checked again soon; while the database is unavailable there is nothing to read
        return caller is not None and caller.scope.allows(Scope.READ)

    return may_read
