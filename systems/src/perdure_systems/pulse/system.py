"""Pulse as one process: `python -m perdure_systems pulse`."""

from __future__ import annotations

from typing import Final

from perdure import WorkerSettings
from perdure_systems.kit.service import System
from perdure_systems.pulse.diagnostic_routes import DIAGNOSTICS
from perdure_systems.pulse.jobs import app, database
from perdure_systems.pulse.pages import PAGES
from perdure_systems.pulse.routes import ROUTES
from perdure_systems.pulse.settings import worker_settings


def read_worker_settings() -> WorkerSettings:
    """The settings of the workers, read when the system starts."""
    return worker_settings(url=app.url)


SYSTEM: Final = System(
    name="pulse",
    title="Pulse",
    port=8104,
    apps=(app,),
    routes=[*ROUTES, *DIAGNOSTICS, *PAGES],
    databases=(database,),
    worker=read_worker_settings,
)
