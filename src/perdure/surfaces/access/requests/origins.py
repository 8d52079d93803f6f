"""Refuses requests that another site makes a browser send: for every method, also on this machine.

The Host header reveals names that another site has pointed at us. Sec-Fetch-Site and Origin say which page a request
comes from; only browsers send them.
"""

from __future__ import annotations

import re
from typing import Final

from perdure.surfaces.access.answers import Refused
from perdure.surfaces.access.requests.authority import is_allowed, is_same_origin
from perdure.surfaces.access.requests.visit import Visit
from perdure.surfaces.access.settings import AccessSettings

_OURS: Final = frozenset({"same-origin", "none"})  # none: a typed address or a bookmark
_SECRET: Final = re.compile(r"(?:^|&)(?:access_token|token)=|pdr_[A-Za-z0-9_-]{20}", re.IGNORECASE)


def refuse_other_hosts(visit: Visit, settings: AccessSettings) -> None:
    """Raise Refused (421) unless the request is for a name of ours."""
    if visit.authority is None:
        raise Refused(400, "Bad Request", "The request must have exactly one valid Host header.")
    if not is_allowed(visit.authority, settings.hosts, any_address=settings.requires_token):
        raise Refused(
            421,
            "Misdirected Request",
            f"This desk does not answer to the name {visit.authority.host}. If it is one of its names, "
            f"start it with PERDURE_DESK_HOSTS={visit.authority.host}.",
        )


def refuse_other_sites(visit: Visit) -> None:
    """Raise Refused (403) if a page of another origin makes the request."""
    site = visit.headers.get("sec-fetch-site")
    origins = visit.headers.getlist("origin")
    if site is not None and site not in _OURS:
        raise Refused(403, "Forbidden", "The request comes from a page of another site (Sec-Fetch-Site).")
    if visit.authority is None:
        return
    for origin in origins:
        if not is_same_origin(origin, visit.authority, is_https=visit.is_https):
            raise Refused(403, "Forbidden", "The request comes from a page of another site (Origin).")


def is_followed_link(visit: Visit) -> bool:
    """Whether the request follows a link from another site to a page: the browser is then made to repeat it."""
    headers = visit.headers
    return (
        visit.method == "GET"
        and not visit.is_of_program
        and "origin" not in headers
        and headers.get("sec-fetch-site") in {"cross-site", "same-site"}
        and headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest") == "document"
    )


def refuse_secret_in_url(visit: Visit) -> None:
    """Raise Refused (400) for a token in the URL: logs and browser histories keep URLs."""
    if _SECRET.search(visit.query):
        raise Refused(
            400,
            "Bad Request",
            "A token must not be in a URL, because logs store URLs: send it as Authorization: Bearer pdr_…, "
            "and revoke this one.",
        )
