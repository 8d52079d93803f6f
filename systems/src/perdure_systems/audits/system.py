"""The audits as a system: `python -m perdure_systems audits`."""

from __future__ import annotations

from typing import Final

from perdure_systems.audits.jobs import app, database
from perdure_systems.audits.web.health import HEALTH
from perdure_systems.audits.web.pages import PAGES
from perdure_systems.audits.web.routes import API
from perdure_systems.kit.service import System
from perdure_systems.notifications.jobs import app as notifications

SYSTEM: Final = System(
    name="audits",
    title="Site audits",
    port=8106,
    apps=(app, notifications),
    routes=[*API, *PAGES],
    databases=(database,),
    health=HEALTH,
)
