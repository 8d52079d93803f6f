"""A room of the desk: its pages and commands, and their routes.

A page is a coroutine that takes a `Visit` and returns `visit.page(...)`. A command handles a POST and returns
`visit.done(...)`. Both may raise: every error becomes a page that says what is wrong, with the right status. A command
with a confirmation is sent twice: without the field `confirmed`, the response is the question.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from perdure.domain.operate.access import Scope
from perdure.errors import NotFoundError
from perdure.surfaces.desk.failures import show_failure
from perdure.surfaces.desk.frame import Frame
from perdure.surfaces.desk.visit import Visit

Handler = Callable[[Visit], Awaitable[Response]]
Question = str | Callable[[Visit], str]
MOST_FORM_BYTES: Final = 64 * 1024


class Entry(Struct, frozen=True, kw_only=True):
    """One route of the desk. `scope`: the scope that the caller needs.

    `confirm` is the question before the command runs, or a function that makes it from the visit.
    """

    path: str
    handler: Handler
    method: str = "GET"
    scope: Scope = Scope.READ
    confirm: Question | None = None


class Room:
    """Pages and commands that belong together; `name` is their highlighted entry of the rail."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.entries: list[Entry] = []

    def page(self, path: str, *, scope: Scope = Scope.READ) -> Callable[[Handler], Handler]:
        """Decorator: show this page at `path`."""
        return self._adding(lambda handler: Entry(path=path, handler=handler, scope=scope))

    def command(
        self, path: str, *, scope: Scope = Scope.OPERATE, confirm: Question | None = None
    ) -> Callable[[Handler], Handler]:
        """Decorator: run this command on a POST to `path`."""
        return self._adding(
            lambda handler: Entry(path=path, handler=handler, method="POST", scope=scope, confirm=confirm)
        )

    def routes(self, frame: Frame) -> list[BaseRoute]:
        """The routes of this room."""
        return [Route(entry.path, _endpoint(entry, frame, self.name), methods=[entry.method]) for entry in self.entries]

    def _adding(self, entry_of: Callable[[Handler], Entry]) -> Callable[[Handler], Handler]:
        def added(handler: Handler) -> Handler:
            self.entries.append(entry_of(handler))
            return handler

        return added


def _endpoint(entry: Entry, frame: Frame, room: str) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        visit = Visit(request, frame, room)
        try:
            if not visit.may(entry.scope):
                return await _refuse(visit, entry)
            if entry.method == "POST":
                visit.form = await request.form(max_files=0, max_fields=100, max_part_size=MOST_FORM_BYTES)
                if entry.confirm is not None and not visit.field("confirmed"):
                    return await _ask(visit, entry.confirm)
            return await entry.handler(visit)
        except HTTPException:  # a form that is too long or invalid: the server responds with the error's status
            raise
        except Exception as error:  # noqa: BLE001 - every error becomes a page
            return await show_failure(visit, error)

    return answer


async def _ask(visit: Visit, confirm: Question) -> Response:
    question = confirm.format(**visit.request.path_params) if isinstance(confirm, str) else confirm(visit)
    fields = [(name, value) for name, value in visit.form.multi_items() if isinstance(value, str) and name != "_csrf"]
    return await visit.page("pages/confirm.html", title="Confirm", question=question, fields=fields)


async def _refuse(visit: Visit, entry: Entry) -> Response:
    why = visit.frame.about.why_read_only()
    if why is None:
        problem = f"This needs the scope {entry.scope}. Your scope is {visit.caller.scope}."
        advice = f"Sign in with a token that has it: perdure token create --name NAME --scope {entry.scope}"
    else:
        problem, advice = f"This desk is read-only: {why}.", "Use a desk or a terminal that can write the database."
    return await visit.page("pages/problem.html", title="Not allowed", status=403, problem=problem, advice=advice)


def nowhere(frame: Frame) -> Callable[[Request], Awaitable[Response]]:
    """The page for unknown paths."""

    async def answer(request: Request) -> Response:
        return await show_failure(Visit(request, frame, ""), NotFoundError(f"there is no page {request.url.path}"))

    return answer


def joined(rooms: Iterable[Room], frame: Frame) -> list[BaseRoute]:
    """The routes of several rooms."""
    return [route for room in rooms for route in room.routes(frame)]
