"""The system as it is run: `python -m perdure_systems notifications`."""

from __future__ import annotations

from typing import Final

from perdure.mcp import McpSettings
from perdure_systems.kit.service import System
from perdure_systems.notifications.jobs import app
from perdure_systems.notifications.routes import API
from perdure_systems.notifications.views import VIEWS

SYSTEM: Final = System(
    name="notifications",
    title="Notifications",
    port=8101,
    apps=(app,),
    routes=[*API, *VIEWS],
    mcp=McpSettings(commands=True),
)
