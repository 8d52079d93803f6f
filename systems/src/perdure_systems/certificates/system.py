"""The certificate system as a whole."""

from perdure_systems.certificates.jobs import app, database
from perdure_systems.certificates.web.routes import ROUTES
from perdure_systems.kit.service import System
from perdure_systems.notifications.jobs import app as notifications_app

SYSTEM = System(
    name="certificates",
    title="Certificates",
    port=8102,
    apps=(app, notifications_app),
    routes=ROUTES,
    databases=(database,),
)
