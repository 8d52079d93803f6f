"""For apps whose handlers use Django's ORM."""

from __future__ import annotations

from collections.abc import Iterator

from django.db import close_old_connections

from perdure.worker.attempt.context.context import Context


def fresh_connections(ctx: Context) -> Iterator[None]:
    """Middleware that does for each attempt what Django does for each request: `app.middleware(fresh_connections)`.

    Connections that are broken or older than CONN_MAX_AGE are closed before and after the attempt, so that a worker
    survives a restart of the database. It acts on the thread that runs the handler: write handlers that use the ORM as
    plain functions.
    """
    del ctx
    close_old_connections()
    try:
        yield
    finally:
        close_old_connections()
