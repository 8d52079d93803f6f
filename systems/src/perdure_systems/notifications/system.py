"""The system as it is run: `python -m perdure_systems notifications`."""

from __future__ import annotations

from typing import Final

from perdure_systems.kit.service import System
from perdure_systems.notifications.jobs import app

SYSTEM: Final = System(name="notifications", title="Notifications", port=8101, apps=(app,), routes=[])
