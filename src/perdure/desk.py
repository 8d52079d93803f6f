"""The web desk and the HTTP API as an ASGI application, to be served by itself or mounted in an app of yours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perdure.app.app import App
from perdure.signals.metrics.settings import MetricsSettings
from perdure.surfaces.access.settings import AccessSettings
from perdure.surfaces.mcp.settings import McpSettings
from perdure.surfaces.server.extra import missing_web
from perdure.surfaces.server.health_settings import Check, Condition, HealthSettings

if TYPE_CHECKING:
    from collections.abc import Collection

    from perdure.surfaces.server.site import Site
    from perdure.worker.worker import Worker

__all__ = ["AccessSettings", "Check", "Condition", "HealthSettings", "MetricsSettings", "asgi"]


def asgi(
    source: App | str,
    *,
    prefix: str = "",
    read_only: bool = False,
    access: AccessSettings | None = None,
    health: HealthSettings | None = None,
    metrics: MetricsSettings | None = None,
    workers: Collection[Worker] = (),
    mcp: McpSettings | None = None,
) -> Site:
    """The desk of an app, or of a database by its URL, as an ASGI application.

    With an app, jobs can be enqueued over the API. `prefix` is the path below which the desk is served, if the app that
    mounts it does not say so itself. With `read_only` nothing is written, so a standby database is enough. `access`
    says who gets in: by default callers on this machine, and others with a token. `health` says when `/readyz` warns,
    `metrics` how many labels `/metrics` has. `workers` are those of this process, for its diagnostics and metrics; a
    list may be filled later. `mcp` serves agents at `/mcp` (`perdure.mcp.McpSettings`).

    Where the server's lifespan does not reach a mounted app, as in Starlette and FastAPI, enter it yourself:
    `async with desk: ...` in the lifespan of your app. Otherwise the first request opens the database.
    """
    try:
        from perdure.surfaces.server.site import Site  # noqa: PLC0415 - starlette is an extra
    except ModuleNotFoundError as error:
        raise missing_web(error) from None
    return Site(
        source,
        prefix=prefix,
        read_only=read_only,
        access=access,
        health=health,
        metrics=metrics,
        workers=workers,
        mcp=mcp,
    )
