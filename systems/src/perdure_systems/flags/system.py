"""The system as it is run: `python -m perdure_systems flags`."""

from __future__ import annotations

from typing import Final

from perdure_systems.flags.jobs import WORKER, app, database
from perdure_systems.flags.web.flag_routes import FLAG_ROUTES
from perdure_systems.flags.web.pages import PAGES
from perdure_systems.flags.web.routes import SCHEDULE_ROUTES
from perdure_systems.kit.service import System

SYSTEM: Final = System(
    name="flags",
    title="Flags",
    port=8103,
    apps=(app,),
    routes=[*SCHEDULE_ROUTES, *FLAG_ROUTES, *PAGES],
    databases=(database,),
    worker=WORKER,
)
