"""Pulse as one process: `python -m perdure_systems pulse`."""

from __future__ import annotations

from typing import Final

import structlog

from perdure import WorkerSettings
from perdure_systems.kit.service import System
from perdure_systems.pulse.jobs import app, database
from perdure_systems.pulse.settings import read_settings, worker_settings
from perdure_systems.pulse.web.backup_routes import BACKUPS
from perdure_systems.pulse.web.pages import PAGES
from perdure_systems.pulse.web.routes import ROUTES

log = structlog.get_logger("perdure_systems.pulse")


def read_worker_settings() -> WorkerSettings:
    """The settings of the workers, read when the system starts."""
    if read_settings().backup_folder and not app.url.startswith("sqlite:"):
        log.info("PULSE_BACKUP_FOLDER does nothing on PostgreSQL: use pg_dump, or pg_basebackup with a WAL archive")
    return worker_settings(url=app.url)


SYSTEM: Final = System(
    name="pulse",
    title="Pulse",
    port=8104,
    apps=(app,),
    routes=[*ROUTES, *BACKUPS, *PAGES],
    databases=(database,),
    worker=read_worker_settings,
)
