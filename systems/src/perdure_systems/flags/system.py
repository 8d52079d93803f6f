"""The system as it is run: `python -m perdure_systems flags`. It runs the notifications that its alerts go through."""

from __future__ import annotations

from typing import Final

from perdure_systems.flags.jobs import WORKER, app, database
from perdure_systems.flags.web.flag_routes import FLAG_ROUTES
from perdure_systems.flags.web.pages import PAGES
from perdure_systems.flags.web.routes import SCHEDULE_ROUTES
from perdure_systems.kit.service import System
from perdure_systems.notifications.jobs import app as notifications_app

SYSTEM: Final = System(
    name="flags",
    title="Flags",
    port=8103,
    apps=(app, notifications_app),
    routes=[*SCHEDULE_ROUTES, *FLAG_ROUTES, *PAGES],
    databases=(database,),
    worker=WORKER,
)
