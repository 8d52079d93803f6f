"""One route of the API, and the call that is passed to its handler.

A handler declares its request and response types in its annotations: `async def jobs(call: Call[JobsQuery, None]) ->
JobList`. Router, OpenAPI document, tests and the docs page read them from there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from inspect import getdoc
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, get_args, get_type_hints

from msgspec import Struct
from starlette.requests import Request

from perdure.domain.operate.access import Scope
from perdure.operate.desk import Desk
from perdure.surfaces.access.caller import Caller

if TYPE_CHECKING:
    from perdure.surfaces.api.revisions import Turns
    from perdure.surfaces.server.site import Site

Q = TypeVar("Q")
B = TypeVar("B")
_STATUSES_OF_EVERY_ROUTE: Final = (400, 401, 403, 421, 422, 429, 500, 503, 504)
_STATUSES_OF_BODIES: Final = (412, 413, 415)


class Given(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of a query, or a JSON object in a body; unknown names are refused."""


class Call(Generic[Q, B]):
    """One parsed and checked request. `headers` are sent with the response; `turns` are the locks of this desk."""

    def __init__(self, *, request: Request, site: Site, caller: Caller, path: Mapping[str, str], turns: Turns) -> None:
        self.request = request
        self.turns = turns
        self.site = site
        self.caller = caller
        self.path = path
        self.headers: dict[str, str] = {}
        self.desk: Desk
        self.query: Q
        self.body: B


Handler = Callable[[Call[Any, Any]], Awaitable[Any]]


class Route(Struct, frozen=True, kw_only=True, dict=True):
    """One method of one path: who may use it, what it does, and its possible responses.

    `path` is relative to /api/v1. `conflicts`: it may answer 409. `guarded`: it checks If-Match; other commands refuse
    that header with 412. `expires`: it may answer 410, because events are deleted after a time. `seeks`: it may answer
    404, because its query may name a job that does not exist.
    """

    method: str
    path: str
    scope: Scope
    handler: Handler
    tag: str
    status: int = 200
    conflicts: bool = False
    guarded: bool = False
    expires: bool = False
    seeks: bool = False

    @cached_property
    def _hints(self) -> dict[str, Any]:
        return get_type_hints(self.handler)

    def _taken(self, place: int) -> Any:
        found = get_args(self._hints["call"])[place]
        return None if found is type(None) else found

    @property
    def query(self) -> type[Given] | None:
        """The parameters of its query."""
        found: type[Given] | None = self._taken(0)
        return found

    @property
    def request(self) -> type[Given] | None:
        """The type of its request body."""
        found: type[Given] | None = self._taken(1)
        return found

    @property
    def response(self) -> Any:
        """The type of its response body; None: no body."""
        found = self._hints["return"]
        return None if found is type(None) else found

    @property
    def summary(self) -> str:
        """What it does, in one line."""
        return (getdoc(self.handler) or "").splitlines()[0].rstrip(".")

    @property
    def description(self) -> str:
        """Further details, after the first line."""
        return (getdoc(self.handler) or "").partition("\n\n")[2]

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names in braces in its path, in order."""
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))

    @property
    def errors(self) -> tuple[int, ...]:
        """The status codes of its possible errors."""
        found = set(_STATUSES_OF_EVERY_ROUTE)
        if self.request is not None:
            found.update(_STATUSES_OF_BODIES)
        if self.parameters or self.seeks:
            found.add(404)
        if self.conflicts:
            found.update({404, 409})
        if self.expires:
            found.update({409, 410})
        return tuple(sorted(found))

    @property
    def name(self) -> str:
        """Its name in the OpenAPI document: that of its handler."""
        return str(getattr(self.handler, "__name__", self.path))
