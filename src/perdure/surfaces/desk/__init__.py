"""The web desk: pages rendered on the server and kept live by a small script, over the shared commands and views.

How to add a page
=================

1. `pages/<name>.py`: a `Room` with coroutines that take a `Visit`::

       room = Room("queues")  # the highlighted entry of the rail; rail.py has the list

       @room.page("/queues")
       async def queues(visit: Visit) -> Response:
           views = await visit.shared(("queues", visit.span), lambda: visit.desk.queues(visit.span))
           now = await visit.now()
           return await visit.page("pages/queues.html", title="Queues", has_span=True, queues=views, now=now)

       @room.command("/queues/{name}/pause", confirm="Pause the queue {name}?")
       async def pause(visit: Visit) -> Response:
           name = visit.path("name")
           await visit.desk.holds.pause(queue=name, why=visit.why)
           return visit.done(f"Queue {name} is paused.", back=f"/queues/{name}")

   Errors may be raised: `failures.py` turns them into pages with the right status. `visit.shared` keeps an answer for
   a second, so that open tabs share it; use it for what does not depend on the caller. Commands need the scope
   `operate` unless you say otherwise. One that is worth a question has `confirm`.
2. `pages/__init__.py`: the room in `ROOMS`.
3. `templates/pages/<name>.html`: `{% extends layout %}`, `{% block content %}`; macros from `parts/macros.html`
   (`chip`, `command`, `go`, `table`, `empty`, `json`, `cli`, `paged`, …) and the functions `number`, `span`, `share`,
   `rate`, `moment(at, now)`, `ago(at, now)`, `full(at)`, `visible(text)`, `document(json)`, `charts.…`. Links are made
   by `url("/path", name=value)`, which knows the prefix; a name inside a path goes through `piece(name)`. The block
   `every` says how often an open page refreshes at most, in seconds: `{% block every %}5{% endblock %}`; 0 means never.
   Rows and all else that must keep its place need an `id`.
   No `style` attributes, no inline script: the content security policy forbids them. Text of jobs goes through
   `visible(...)`; plain `{{ }}` is escaped, and control characters in it are shown as escapes.
4. A test in `tests/surfaces/desk/`, and an entry in `tests/support/web/desk_pages.py`, which the screenshots, the crawl
   with hostile text and the size test go through.
"""

from collections.abc import Callable

from starlette.requests import Request
from starlette.routing import BaseRoute, Route

from perdure.app.app import App
from perdure.operate.desk import Desk
from perdure.surfaces.desk.frame import About as About
from perdure.surfaces.desk.frame import Frame
from perdure.surfaces.desk.pages import ROOMS
from perdure.surfaces.desk.rooms import joined, nowhere


def web_desk(
    *,
    desk_for: Callable[[Request], Desk],
    about: About,
    app: App | None = None,
    fresh_for: float = 1.0,
    live: bool = True,
) -> list[BaseRoute]:
    """All routes of the desk: pages, commands, static files, and a page for unknown paths; put them last.

    `app` checks kinds and arguments. `live`: the site serves `/live`.
    """
    frame = Frame(desk_for=desk_for, about=about, app=app, fresh_for=fresh_for, live=live)
    static = Route("/static/{path:path}", frame.files.serve, methods=["GET"])
    return [static, *joined(ROOMS, frame), Route("/{path:path}", nowhere(frame), methods=["GET"])]
